"""Clients that send requests about a few subjects at a time to all nodes, and record the answers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import httpx
from tests.system.linearizability.history import WRITES, Action, History, Operation, Result
from tests.system.linearizability.subject_model import TEXTS, make_text, number_of_text

TIMEOUT_SECONDS: Final = 2.0
RECOVERY_SECONDS: Final = 60.0
"""Longest time for which a node may fail after all faults have ended, in seconds."""
SUBJECTS_AT_ONCE: Final = 3
OPERATIONS_PER_SUBJECT: Final = 100
"""Operations after which a new subject replaces this one. Checking time grows faster than the length of a history."""
_WEIGHTS: Final = {
    Action.REGISTER: 30,
    Action.LOOK_UP: 10,
    Action.GET_BY_ID: 12,
    Action.GET_LATEST: 12,
    Action.GET_VERSION: 8,
    Action.LIST_VERSIONS: 8,
    Action.LIST_ALL_VERSIONS: 3,
    Action.SOFT_DELETE_VERSION: 6,
    Action.PURGE_VERSION: 4,
    Action.SOFT_DELETE_SUBJECT: 1,
    Action.PURGE_SUBJECT: 1,
    Action.CHECK_COMPATIBILITY: 8,
}
_WEIGHTS_WITHOUT_PURGES: Final = {
    action: 0 if action in {Action.PURGE_VERSION, Action.PURGE_SUBJECT} else weight
    for action, weight in _WEIGHTS.items()
}


class Answer(NamedTuple):
    """The result of a request, and the schema id in it."""

    result: Result
    schema_id: int | None = None


class NotCarriedOut(Exception):
    """The request did not reach a node, or the node refused to read it."""


class OutcomeUnknown(Exception):
    """The request may have been carried out."""


def send_request(http: httpx.Client, operation: Operation) -> Answer:
    """Send one request and return its answer. Raises `NotCarriedOut`, `OutcomeUnknown`."""
    method, path, body = make_request(operation)
    try:
        response = http.request(method, path, json=body)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise NotCarriedOut from error
    except httpx.TransportError as error:
        raise OutcomeUnknown from error
    return read_response(operation, response)


def make_request(operation: Operation) -> tuple[str, str, Any]:
    """Return method, path and JSON body of the request for an operation."""
    method, path, text = _REQUESTS[operation.action](operation.argument)
    body = None if text is None else {"schema": make_text(operation.subject, text)}
    return method, path.replace("{S}", operation.subject), body


def read_response(operation: Operation, response: httpx.Response) -> Answer:
    """Return the answer in a response. Raises `NotCarriedOut`, `OutcomeUnknown`."""
    if response.status_code == httpx.codes.REQUEST_TIMEOUT:  # the request arrived too slowly, on a busy machine
        raise NotCarriedOut(response.text)
    if response.status_code >= 500:
        raise OutcomeUnknown(response.text)
    try:
        answer = response.json()
    except ValueError:
        raise AssertionError(f"{operation} is answered {response.status_code} with {response.headers}") from None
    if response.status_code != 200:
        return Answer(Result(answer["error_code"]))
    return _read_answer(operation, answer)


def _read_answer(operation: Operation, answer: Any) -> Answer:
    match operation.action:
        case Action.CHECK_COMPATIBILITY:
            return Answer(Result(200, answer["is_compatible"]))
        case Action.GET_BY_ID:
            return Answer(Result(200, number_of_text(operation.subject, answer["schema"])), operation.argument[0])
        case Action.REGISTER | Action.LOOK_UP | Action.GET_LATEST | Action.GET_VERSION:
            text = number_of_text(operation.subject, answer["schema"])
            return Answer(Result(200, (answer["version"], text)), answer["id"])
        case _:
            return Answer(Result(200, tuple(answer) if isinstance(answer, list) else answer))


_REQUESTS: Final[dict[Action, Callable[[Any], tuple[str, str, int | None]]]] = {
    Action.REGISTER: lambda text: ("POST", "/subjects/{S}/versions", text),
    Action.LOOK_UP: lambda text: ("POST", "/subjects/{S}", text),
    Action.GET_BY_ID: lambda argument: ("GET", f"/schemas/ids/{argument[0]}", None),
    Action.GET_LATEST: lambda _: ("GET", "/subjects/{S}/versions/latest", None),
    Action.GET_VERSION: lambda number: ("GET", f"/subjects/{{S}}/versions/{number}", None),
    Action.LIST_VERSIONS: lambda _: ("GET", "/subjects/{S}/versions", None),
    Action.LIST_ALL_VERSIONS: lambda _: ("GET", "/subjects/{S}/versions?deleted=true", None),
    Action.SOFT_DELETE_VERSION: lambda number: ("DELETE", f"/subjects/{{S}}/versions/{number}", None),
    Action.PURGE_VERSION: lambda number: ("DELETE", f"/subjects/{{S}}/versions/{number}?permanent=true", None),
    Action.SOFT_DELETE_SUBJECT: lambda _: ("DELETE", "/subjects/{S}", None),
    Action.PURGE_SUBJECT: lambda _: ("DELETE", "/subjects/{S}?permanent=true", None),
    Action.CHECK_COMPATIBILITY: lambda text: ("POST", "/compatibility/subjects/{S}/versions/latest", text),
}


class Subject:
    """A subject that clients work on, with the ids that they have seen. Subjects with even numbers are never purged."""

    def __init__(self, number: int) -> None:
        self.name = f"subject-{number}"
        self.weights = _WEIGHTS if number % 2 else _WEIGHTS_WITHOUT_PURGES
        self.ids: dict[int, int] = {}
        """Number of the text by schema id."""
        self.operations = 0

    def choose_operation(self, random: Random) -> tuple[Action, Any]:
        """Return an action with its argument."""
        action = random.choices(list(self.weights), list(self.weights.values()))[0]
        if action is Action.GET_BY_ID:
            known = list(self.ids.items())
            return (action, random.choice(known)) if known else (Action.LIST_VERSIONS, None)
        if action in {Action.GET_VERSION, Action.SOFT_DELETE_VERSION, Action.PURGE_VERSION}:
            return action, random.randint(1, 2 + len(self.ids))
        if action in {Action.REGISTER, Action.LOOK_UP, Action.CHECK_COMPATIBILITY}:
            return action, random.randrange(TEXTS)
        return action, None


class Workload:
    """The clients of a run.

    Args:
        urls: URLs of the nodes.
        history: Receives the operations.
        clients: Number of concurrent clients.
        seed: Seed of the random choice of requests.
    """

    def __init__(self, urls: Sequence[str], history: History, clients: int, seed: int) -> None:
        self._urls = urls
        self._history = history
        self._seed = seed
        self._lock = threading.Lock()
        self._is_stopped = threading.Event()
        self._failure: BaseException | None = None
        self.subjects = [Subject(number) for number in range(SUBJECTS_AT_ONCE)]
        self.outcomes: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._run_client, args=(client,)) for client in range(clients)]

    def start(self) -> None:
        """Start the clients."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the clients and wait for their last answers. Raises the exception of a client."""
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def read_everything(self) -> None:
        """Read every subject from every node, and every id from a random node, after all faults have ended.

        Raises AssertionError when a node does not answer.
        """
        random = Random(self._seed)
        nodes = [httpx.Client(base_url=url, timeout=30) for url in self._urls]
        for subject in self.subjects:
            for node, http in enumerate(nodes):
                self._insist(http, node, subject, Action.LIST_ALL_VERSIONS, None)
                self._insist(http, node, subject, Action.GET_LATEST, None)
            for known in list(subject.ids.items()):
                node = random.randrange(len(nodes))
                self._insist(nodes[node], node, subject, Action.GET_BY_ID, known)
        for http in nodes:
            http.close()

    def _insist(self, http: httpx.Client, node: int, subject: Subject, action: Action, argument: Any) -> None:
        until = time.monotonic() + RECOVERY_SECONDS
        while not self._send(http, -1, node, subject, action, argument):
            assert time.monotonic() < until, f"node {node} does not recover: {action} of {subject.name} is not answered"
            time.sleep(0.1)

    def _run_client(self, client: int) -> None:
        random = Random(f"{self._seed}-{client}")
        nodes = [httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS) for url in self._urls]
        try:
            while not self._is_stopped.is_set():
                subject = self._choose_subject(random)
                node = random.randrange(len(nodes))
                if not self._send(nodes[node], client, node, subject, *subject.choose_operation(random)):
                    time.sleep(0.02)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            for http in nodes:
                http.close()

    def _choose_subject(self, random: Random) -> Subject:
        with self._lock:
            active = self.subjects[-SUBJECTS_AT_ONCE:]
            subject = random.choice(active)
            subject.operations += 1
            if subject.operations >= OPERATIONS_PER_SUBJECT:
                self.subjects.append(Subject(len(self.subjects)))
                subject.operations -= OPERATIONS_PER_SUBJECT
            return subject

    def _send(
        self, http: httpx.Client, client: int, node: int, subject: Subject, action: Action, argument: Any
    ) -> bool:
        """Send a request and add it to the history. Returns whether it was answered."""
        operation = Operation(client, node, action, subject.name, argument, time.monotonic_ns())
        try:
            answer = send_request(http, operation)
        except NotCarriedOut:
            self._count("refused")
            return False
        except OutcomeUnknown:
            self._count("unknown")
            if action in WRITES:
                self._history.add(operation)
            return False
        done = operation._replace(completed=time.monotonic_ns(), result=answer.result, schema_id=answer.schema_id)
        self._history.add(done)
        self._count("writes" if action in WRITES else "reads")
        if answer.schema_id is not None and isinstance(answer.result.value, tuple):
            subject.ids[answer.schema_id] = answer.result.value[1]
        return True

    def _count(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] += 1
