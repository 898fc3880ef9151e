"""A sink whose client blocks: it has a thread of its own, so that one that does not answer keeps no other waiting."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor

from stele.errors import ForbiddenAddress, Unavailable
from stele.protocol.cncf import CloudEvent
from stele.service.delivery.sink_settings import SinkAddress
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.outgoing import AddressRules, find_address


class BlockingSink(ABC):
    """Sends events from a thread, which is started with the first one.

    Args:
        address: Of the broker.
        rules: Which addresses are allowed; None: whatever the broker's name leads to.
    """

    def __init__(self, address: SinkAddress, rules: AddressRules | None) -> None:
        self.address = address
        self._rules = rules
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="stele-sink")

    async def send(self, event: CloudEvent) -> Attempt:
        """Deliver one event."""
        target = ""
        if self._rules is not None and not self.is_connected():
            try:
                target = await find_address(self._rules, self.address.host, self.address.port)
            except ForbiddenAddress as error:
                return Attempt(DeliveryCode.FORBIDDEN_ADDRESS, detail=str(error))
            except Unavailable as error:
                return Attempt(DeliveryCode.NO_ANSWER, detail=str(error))
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._deliver, event, target)

    @abstractmethod
    def is_connected(self) -> bool:
        """Return whether there is a connection that can be used again."""

    @abstractmethod
    def deliver(self, event: CloudEvent, target: str) -> Attempt:
        """Deliver one event in this thread; target is the address to connect to, where there is no connection."""

    @abstractmethod
    def disconnect(self) -> None:
        """Give up the connection, and what was not sent."""

    def _deliver(self, event: CloudEvent, target: str) -> Attempt:
        attempt = self.deliver(event, target)
        if attempt.code not in {DeliveryCode.DELIVERED, DeliveryCode.REFUSED}:
            self.disconnect()
        return attempt

    async def close(self) -> None:
        """Release the connection once the thread is free; nobody waits for that."""
        self._thread.submit(self.disconnect)
        self._thread.shutdown(wait=False)
