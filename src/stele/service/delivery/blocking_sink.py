"""A sink whose client library blocks. Each has a thread of its own, so a broker that hangs delays no other sink."""

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
        address: Address of the broker.
        rules: Allowed addresses; None allows every address.
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
        """Close the connection, and drop events that were not sent."""

    def _deliver(self, event: CloudEvent, target: str) -> Attempt:
        attempt = self.deliver(event, target)
        if attempt.code not in {DeliveryCode.DELIVERED, DeliveryCode.REFUSED}:
            self.disconnect()
        return attempt

    async def close(self) -> None:
        """Close the connection as soon as the thread is free. Does not wait for that."""
        self._thread.submit(self.disconnect)
        self._thread.shutdown(wait=False)
