"""Nodes of one log in one process, whose steps run in an order chosen by a seed. Every run of a seed is the same.

Each node is a whole server without sockets: the cached answers of connections, the front, a dialect, the registry. Each
call of the log waits before and after its effect until the scheduler lets it continue. Some calls wait for long. So
several writes of other nodes may happen between an append and its answer, as if the node were paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from random import Random
from typing import Any, Final

import httpx
from tests.system.linearizability.history import WRITES, Action, History, Operation
from tests.system.linearizability.workload import Answer, OutcomeUnknown, make_request, read_response

from stele.core.ports import LogEntry
from stele.errors import StoreTimeout
from stele.server.asgi import ReceivedRequest
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

TEXTS: Final = 3
SUBJECT: Final = "s"
_LONGEST_RUN: Final = 40
"""Largest number of turns of the event loop between two choices of the scheduler."""
_PAUSES: Final = 0.1
"""Share of steps that are paused while other nodes make many steps."""
_LONGEST_PAUSE: Final = 80
"""Longest pause, in choices of the scheduler."""
_FAILURES: Final = 0.03
"""Share of appends that raise an error, so that the node does not know their outcome."""
_WEIGHTS: Final = {
    Action.REGISTER: 30,
    Action.LOOK_UP: 6,
    Action.GET_BY_ID: 8,
    Action.GET_LATEST: 8,
    Action.GET_VERSION: 6,
    Action.LIST_VERSIONS: 8,
    Action.LIST_ALL_VERSIONS: 4,
    Action.SOFT_DELETE_VERSION: 8,
    Action.PURGE_VERSION: 2,
    Action.SOFT_DELETE_SUBJECT: 12,
    Action.PURGE_SUBJECT: 2,
    Action.CHECK_COMPATIBILITY: 6,
}
_PURGES: Final = {
    Action.SOFT_DELETE_VERSION: Action.PURGE_VERSION,
    Action.SOFT_DELETE_SUBJECT: Action.PURGE_SUBJECT,
}


class _InlineExecutor(ThreadPoolExecutor):
    """Runs a call in the thread that submits it."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)
        return done


class Scheduler:
    """Lets one waiting step at a time continue. Times in its histories are turns of the event loop."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0
        self._choices = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Waiting steps, each with the number of the first choice that may pick it."""

    async def wait_turn(self) -> None:
        """Wait until the scheduler picks the caller."""
        turn = asyncio.get_running_loop().create_future()
        is_paused = self.random.random() < _PAUSES
        self._waiting.append((self._choices + is_paused * self.random.randrange(_LONGEST_PAUSE), turn))
        await turn

    async def run(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Run coroutines until all are done. Raises the first exception among them."""
        tasks = [asyncio.create_task(row) for row in work]
        while not all(task.done() for task in tasks):
            for _ in range(self.random.randint(1, _LONGEST_RUN)):
                self.now += 1
                await asyncio.sleep(0)
            self._choose_next()
        for task in tasks:
            task.result()

    def _choose_next(self) -> None:
        self._choices += 1
        ready = [row for row in self._waiting if row[0] <= self._choices]
        if ready:
            chosen = self.random.choice(ready)
            self._waiting.remove(chosen)
            if not chosen[1].done():
                chosen[1].set_result(None)


class ScheduledLog(MemoryLog):
    """A log handle whose appends and reads wait for the scheduler. Writers take no fair turns."""

    def __init__(self, shared: MemoryStore, scheduler: Scheduler, *, notices_at_once: bool) -> None:
        super().__init__(shared)
        self._scheduler = scheduler
        self._notices_at_once = notices_at_once

    @property
    def notices_at_once(self) -> bool:
        return self._notices_at_once

    def has_changed(self) -> bool:
        """Return whether the log changed. If notices may be late, return False in 70 % of the calls."""
        return super().has_changed() if self._notices_at_once or self._scheduler.random.random() < 0.3 else False

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        await self._scheduler.wait_turn()
        is_lost = self._scheduler.random.random() < _FAILURES
        written = False if is_lost else await super().append(expected, records)
        await self._scheduler.wait_turn()
        if is_lost or self._scheduler.random.random() < _FAILURES:
            raise StoreTimeout("nobody knows what became of it")
        return written

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        await self._scheduler.wait_turn()
        entries = await super().tail(after, limit)
        await self._scheduler.wait_turn()
        return entries

    def turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - as the port has it
        await asyncio.Event().wait()


class _Node:
    def __init__(self, registry: Registry) -> None:
        self.front = build_dispatcher(registry, ServerSettings(), Metrics())
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self.front), base_url="http://registry")

    async def send_request(self, operation: Operation) -> Answer:
        """Return a cached answer if the front has one, or the answer of the front. Raises `OutcomeUnknown`."""
        method, path, body = make_request(operation)
        request = self._http.build_request(method, path, json=body)
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        place = ("http", None)  # as httpx sets it
        received = ReceivedRequest(method, path.encode(), headers, request.content, place, "registry", "127.0.0.2")  # type: ignore[arg-type]
        known = self.front.find_answer_at_once(received)
        response = httpx.Response(200, content=known[2]) if known else await self._http.send(request)
        return read_response(operation, response)


class _Clients:
    def __init__(self, scheduler: Scheduler, nodes: Sequence[_Node], history: History) -> None:
        self._scheduler = scheduler
        self._nodes = nodes
        self._history = history
        self._ids: dict[int, int] = {}
        self._next: tuple[Action, Any] | None = None
        """The purge that follows a soft-deletion. Without it, most purges would be refused."""

    async def send_requests(self, client: int, count: int) -> None:
        """Send `count` requests, one after another."""
        for _ in range(count):
            await self._scheduler.wait_turn()
            node = self._scheduler.random.randrange(len(self._nodes))
            operation = Operation(client, node, *self._choose_operation(), invoked=self._scheduler.now)
            try:
                answer = await self._nodes[node].send_request(operation)
            except OutcomeUnknown:
                if operation.action in WRITES:
                    self._history.add(operation)
                continue
            await asyncio.sleep(0)  # The answer is read one turn after it was sent, so that the times differ.
            done = operation._replace(completed=self._scheduler.now, result=answer.result, schema_id=answer.schema_id)
            self._history.add(done)
            if operation.action in _PURGES and answer.result.code == 200:
                self._next = _PURGES[operation.action], operation.argument
            if answer.schema_id is not None and isinstance(answer.result.value, tuple):
                self._ids[answer.schema_id] = answer.result.value[1]

    def _choose_operation(self) -> tuple[Action, str, Any]:
        random = self._scheduler.random
        if self._next is not None:
            (action, argument), self._next = self._next, None
            return action, SUBJECT, argument
        action = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        argument = None
        if action is Action.GET_BY_ID:
            if not self._ids:
                return Action.LIST_VERSIONS, SUBJECT, None
            argument = random.choice(list(self._ids.items()))
        elif action in {Action.GET_VERSION, Action.SOFT_DELETE_VERSION, Action.PURGE_VERSION}:
            argument = random.randint(1, TEXTS)
        elif action in {Action.REGISTER, Action.LOOK_UP, Action.CHECK_COMPATIBILITY}:
            argument = random.randrange(TEXTS)
        return action, SUBJECT, argument


async def run_interleaved(
    seed: int, *, nodes: int = 2, clients: int = 5, operations: int = 12, notices_at_once: bool = True
) -> list[Operation]:
    """Return the history of clients that send `operations` requests each to random nodes.

    notices_at_once: whether a node sees at once that another node has written; otherwise it sees it later.
    """
    asyncio.get_running_loop().set_default_executor(_InlineExecutor(1))
    scheduler, store, history = Scheduler(Random(seed)), MemoryStore(), History()
    registries: list[Registry] = []

    async def open_nodes() -> None:
        for _ in range(nodes):
            log = ScheduledLog(store, scheduler, notices_at_once=notices_at_once)
            registries.append(await Registry.open(log))

    await scheduler.run([open_nodes()])
    served = _Clients(scheduler, [_Node(registry) for registry in registries], history)
    await scheduler.run([served.send_requests(client, operations) for client in range(clients)])
    await scheduler.run([registry.close() for registry in registries])
    return history.list_operations()
