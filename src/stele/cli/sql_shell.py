"""The prompt of `stele sql`: statements over several lines up to `;`, a history, and completion of names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stele import __version__
from stele.errors import NotInstalled
from stele.spark.stream_sql.tokens import StatementInvalid, UnfinishedText, split_finished

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output import Output

_LEAVE: Final = {"quit", "exit", "\\q"}
_HELP: Final = """\
CREATE STREAM name [(columns)] WITH (topic = '…', …)   a topic, files or a table as a stream
SHOW STREAMS   DESCRIBE name   DROP STREAM name
SELECT … FROM name                                     what there is now
SELECT STREAM … FROM name                              what arrives, until Ctrl-C
INSERT INTO name SELECT …                              rows as records
A statement ends with ; and may have many lines. quit or Ctrl-D leaves."""
_KEYWORDS: Final = (
    "ALTER AND AS ASC BETWEEN BY CASE CAST COUNT CREATE CROSS DESC DESCRIBE DISTINCT DROP ELSE END EXISTS EXPLAIN FROM "
    "FULL GROUP HAVING IF IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER REPLACE RIGHT SELECT "
    "SET SHOW STREAM STREAMS TABLE TABLES THEN UNION USING VALUES VIEW WHEN WHERE WITH"
)


def need_prompt() -> None:
    """Raise `NotInstalled` when prompt_toolkit is not there."""
    try:
        import prompt_toolkit  # noqa: F401 - an optional part, only tried
    except ImportError as missing:
        raise NotInstalled("prompt_toolkit", "shell") from missing


def read_statements(
    names: Callable[[], Iterable[str]],
    *,
    history: Path | None = None,
    source: Input | None = None,
    screen: Output | None = None,
) -> Iterator[str]:
    """Yield what the user types, one text of whole statements at a time, until the user leaves.

    names    returns the words that are completed beside keywords; called before each prompt
    history  the file that keeps what was typed; None: `history_file()`
    source, screen  in place of the terminal
    """
    need_prompt()
    from prompt_toolkit import PromptSession, print_formatted_text
    from prompt_toolkit.history import FileHistory

    session: PromptSession[str] = PromptSession(
        "stele> ",
        history=FileHistory(str(_create_private(history or history_file()))),
        key_bindings=_key_bindings(),
        multiline=True,
        prompt_continuation="  ...> ",
        input=source,
        output=screen,
    )

    def say(text: str) -> None:
        print_formatted_text(text, output=screen)

    say(f"stele {__version__}: a statement ends with ;  help says more, quit leaves")
    while True:
        try:
            text = session.prompt(completer=_make_completer(names())).strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        word = text.rstrip("; ").lower()
        if word in _LEAVE:
            return
        if word == "help":
            say(_HELP)
        elif text:
            yield text


def history_file() -> Path:
    """Return the path of the shell's history, in the user's folder for the state of programs."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "stele" / "sql_history"


def is_finished(text: str) -> bool:
    """Return whether Enter runs a text instead of starting a new line.

    A text runs if it ends with `;` outside strings and comments, is a command of the shell, is empty, or is invalid.
    """
    if not text.strip() or text.strip().lower() in {*_LEAVE, "help"}:
        return True
    try:
        whole, rest = split_finished(text)
    except UnfinishedText:
        return False
    except StatementInvalid:
        return True
    return bool(whole) and not rest.tokens


def _create_private(path: Path) -> Path:
    """Create a file that only its owner can read, because statements may hold passwords; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    return path


def _key_bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _make_completer(names: Iterable[str]) -> Completer:
    from prompt_toolkit.completion import WordCompleter

    words = dict.fromkeys([*names, *_KEYWORDS.split()])
    return WordCompleter(list(words), ignore_case=True)
