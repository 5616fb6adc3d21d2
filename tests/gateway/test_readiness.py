# SPDX-License-Identifier: Apache-2.0
"""/ready of a gateway's process: 200 while clients can connect, between brokers that the test plays."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from coordinator.config import Address
from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.readiness import GatewayReadiness
from protocol.headers import encode_response
from tests.gateway.rig import Accepting
from tests.groups.harness import WALL_START_MS, FakeClock

CONFIG = GatewayConfig(
    host="gateway.example",
    port_base=10_000,
    max_connections=1,
    max_connections_per_ip=1,
    idle_ms=1,
    request_bytes_max=1,
    unreachable_timeout_ms=5_000,
)


class Probed:
    """A readiness of some brokers, which answer as `says` has it at the moment."""

    def __init__(self, brokers: Mapping[int, Accepting]) -> None:
        self._brokers = brokers
        self.clock = FakeClock()
        self.book = AddressBook(CONFIG.client_address_for, lambda _id, _address: None)
        self.book.set_brokers({n: Address("127.0.0.1", each.port) for n, each in brokers.items()})
        here = Address("gateway.example", 9092)
        self.book.set_our_nodes({1_000_001: OurNode(1_000_001, here, here)})
        self.is_listening = True
        self.readiness = GatewayReadiness(CONFIG, self.book, self.clock, lambda: self.is_listening)
        self.says: dict[int, bytes | None] = {}
        """What a broker answers in place of what it should; None for nothing but the end."""
        self._answering = [asyncio.create_task(self._answer(n, each)) for n, each in brokers.items()]

    async def _answer(self, node_id: int, accepting: Accepting) -> None:
        while True:
            peer = await accepting.peer()
            request = await peer.frame()
            assert request[:4] == b"\0\x12\0\0", "ApiVersions v0"
            said = self.says.get(node_id, b"")
            if said is None:
                peer.abort()
            elif said:
                peer.send(said)
            else:
                peer.send(encode_response(int.from_bytes(request[4:8], "big"), b"\0" * 6, flexible=False))

    async def check(self) -> tuple[bool, bool]:
        """Check once; whether it is ready, and complete."""
        await self.readiness.update_reachability()
        return self.now

    @property
    def now(self) -> tuple[bool, bool]:
        """Whether it is ready, and complete."""
        shown = self.readiness.collect_ready_fields()
        return shown["ready"], shown["complete"]

    def asked(self) -> list[int]:
        """How often each broker was asked."""
        return [each.accepted for each in self._brokers.values()]

    async def close(self) -> None:
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)


@asynccontextmanager
async def probed(count: int) -> AsyncIterator[Probed]:
    brokers = {number: Accepting() for number in range(count)}
    for each in brokers.values():
        await each.start()
    probed = Probed(brokers)
    try:
        yield probed
    finally:
        await probed.close()
        for each in brokers.values():
            each.stop()


async def test_before_a_broker_has_answered_nobody_can_connect() -> None:
    async with probed(1) as gateway:
        assert gateway.now == (False, False)
        assert gateway.readiness.collect_ready_fields()["unreachable_since"] == WALL_START_MS / 1000
        assert await gateway.check() == (True, True)
        assert gateway.readiness.collect_ready_fields() == {
            "ready": True,
            "complete": True,
            "listening": True,
            "nodes": 1,
            "unreachable_since": None,
            "unreachable": {},
        }


async def test_it_is_ready_for_the_configured_time_after_the_last_answer() -> None:
    async with probed(1) as gateway:
        await gateway.check()
        gateway.says[0] = None
        gateway.clock.passed_ms += 1_000
        assert await gateway.check() == (True, False)
        gateway.clock.passed_ms += 3_999
        assert await gateway.check() == (True, False)
        gateway.clock.passed_ms += 1
        assert gateway.now == (False, False)
        shown = gateway.readiness.collect_ready_fields()
        assert shown["unreachable_since"] == WALL_START_MS / 1000 + 1, "since the first check that failed"
        assert "closes the connection at once" in shown["unreachable"]["0"]
        del gateway.says[0]
        assert await gateway.check() == (True, True)


async def test_what_is_no_broker_does_not_count() -> None:
    async with probed(1) as gateway:
        gateway.says[0] = b"HTTP/1.1 400 Bad Request\r\n"
        assert await gateway.check() == (False, False)
        assert (
            "does not speak Kafka's protocol" in gateway.readiness.collect_ready_fields()["unreachable"]["0"]
        )


async def test_the_broker_that_answered_last_is_asked_and_the_others_once_it_does_not() -> None:
    async with probed(3) as gateway:
        await gateway.check()
        assert gateway.asked() == [1, 1, 1]
        await gateway.check()
        assert gateway.asked() == [2, 1, 1]
        gateway.says[0] = None
        assert await gateway.check() == (True, True), "another one answers"
        assert gateway.asked() == [3, 2, 2]
        assert list(gateway.readiness.collect_ready_fields()["unreachable"]) == ["0"]
        await gateway.check()
        assert sum(gateway.asked()) == 8, "one alone again"


async def test_who_does_not_listen_and_who_knows_no_node_are_told_apart() -> None:
    async with probed(1) as gateway:
        await gateway.check()
        gateway.book.set_our_nodes({})
        assert gateway.now == (True, False), "groups have to wait, all else is served"
        gateway.is_listening = False
        assert gateway.now == (False, False)


async def test_while_no_broker_is_known_nothing_is_asked_and_nobody_can_connect() -> None:
    async with probed(0) as gateway:
        assert await gateway.check() == (False, False)
