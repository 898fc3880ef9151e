"""Requests of tests to a server that may end at any moment."""

from __future__ import annotations

import socket
import threading

import pytest
from tests.support.server_process import call


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12",
        b"HTTP/1.1 409 No\r\nContent-Length: 5\r\n\r\n",
    ],
    ids=["nothing", "half a body", "no body of an error"],
)
def test_an_answer_cut_short_is_an_error_of_the_connection(beginning: bytes) -> None:
    """A server that ends during its answer causes an OSError, as one that does not run, whatever bytes it has sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(beginning)

        server = threading.Thread(target=answer)
        server.start()
        with pytest.raises(OSError, match=r"cut short|Remote end closed"):
            call(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        server.join()
