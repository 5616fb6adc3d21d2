# SPDX-License-Identifier: Apache-2.0
"""A gateway within the test's own event loop, between peers that the test plays."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.ports import free_port_run
from coordinator.config import Address
from coordinator.gateway.address_book import OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.gateway import Gateway
from coordinator.gateway.permission_gate import Adopt, adopt_nothing
from coordinator.gateway.routing_types import COORDINATOR, Ask, ClientSession, Route, Verdict
from coordinator.host_resources import real_machine
from protocol.apis import ApiKey
from protocol.client_frames import decode_answer, encode_request
from protocol.headers import RequestHeader, decode_request_header, encode_response
from protocol.message_codecs import find_message_codec
from tests.support.idle import idle

BROKER_ID = 1
OUR_ID = 1_000_001
OURS_AT = 50
"""Our node's port, from the base on."""


def passes(_session: ClientSession, _route: Route, _frame: bytes) -> Verdict:
    """The gate that is open: every request passes to the coordinator."""
    return Verdict(COORDINATOR)


@dataclass
class Peer:
    """The far end of a connection: a client's, or the one that a broker or a node of ours has accepted."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def frame(self) -> bytes:
        """The next frame, without its length."""
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)

    def answer(self, request: bytes, body: bytes) -> None:
        """Answer a request with these bytes behind a header without tags."""
        self.send(encode_response(int.from_bytes(request[4:8], "big", signed=True), body, False))

    async def ended(self) -> bool:
        """Wait until the other side has closed; whether nothing came before."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def ask(self, api: ApiKey, version: int, request: Any) -> Any:
        """Send a request of one of kafka-python's classes, and return the answer to it."""
        self.send(asked(api, version, request))
        return decode_answer(find_message_codec(api, version), api, await self.frame())

    async def close(self) -> None:
        """Close this side."""
        self.writer.close()

    def abort(self) -> None:
        """Close at once: what is only closed goes on sending, and would still be open once the event loop is gone."""
        transport = self.writer.transport
        if transport.get_write_buffer_size() or not transport.is_closing():
            transport.abort()


def asked(api: ApiKey, version: int, request: Any, correlation_id: int = 1) -> bytes:
    """A request as a client sends it."""
    header = RequestHeader(api, version, correlation_id, "a client")
    return encode_request(find_message_codec(api, version), header, request)


def read_request(frame: bytes) -> Any:
    """The request that has come to a broker, or to a node of ours."""
    api, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    codec = find_message_codec(api, version)
    return codec.decode_request(frame, decode_request_header(frame, codec.flexible)[1])


class Accepting:
    """A server whose connections a test takes one by one."""

    def __init__(self) -> None:
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._all: list[Peer] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def accepted(self) -> int:
        """How many have connected so far."""
        return len(self._all)

    async def start(self, path: Path | None = None) -> None:
        """Listen on a port, or at a path."""
        if path is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", limit=1 << 20)
            self.port = self._server.sockets[0].getsockname()[1]
        else:
            self._server = await asyncio.start_unix_server(self._accept, path)

    async def speak_tls(self, context: ssl.SSLContext) -> None:
        """Listen again, on another port and with TLS."""
        self.stop()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", limit=1 << 20, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self._all.append(peer)
        self._peers.put_nowait(peer)

    async def peer(self) -> Peer:
        """The next that has connected."""
        return await asyncio.wait_for(self._peers.get(), 120)

    def stop(self) -> None:
        """Close, with every connection, whatever was not sent yet."""
        if self._server is not None:
            self._server.close()
        for peer in self._all:
            peer.abort()


class Rig:
    """A gateway with one broker and one node of ours."""

    def __init__(self, work: Path, gate: Ask | None = passes, **chosen: Any) -> None:
        self._adopt: Adopt = chosen.pop("adopt", adopt_nothing)
        self.base = free_port_run(OURS_AT + 1)
        self.broker = Accepting()
        self.coordinator = Accepting()
        self._path = work / "private.sock"
        values: dict[str, Any] = {
            "host": "gateway.example",
            "port_base": self.base,
            "max_connections": 100,
            "max_connections_per_ip": 100,
            "idle_ms": 60_000,
            "request_bytes_max": 1 << 20,
        }
        self.config = GatewayConfig(**(values | chosen))
        self._gate = gate
        self.gateway: Gateway
        self._clients: list[Peer] = []

    async def start(self) -> None:
        """Start all of it."""
        loop = asyncio.get_running_loop()
        self.gateway = Gateway(self.config, loop, real_machine(), adopt=self._adopt, gate=self._gate)
        await self.broker.start()
        await self.coordinator.start(self._path)
        self.gateway.set_brokers_and_listen({BROKER_ID: Address("127.0.0.1", self.broker.port)})
        ours = OurNode(OUR_ID, Address("gateway.example", self.base + OURS_AT), self._path)
        self.gateway.set_our_nodes({OUR_ID: ours})
        self.gateway.start()

    async def client(self, node_id: int = BROKER_ID) -> Peer:
        """A client that has connected to the port of a broker, or of our node."""
        port = self.gateway.ports_by_node_id[node_id]
        peer = Peer(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))
        self._clients.append(peer)
        return peer

    async def stop(self) -> None:
        """End all of it."""
        await self.gateway.stop()
        for client in self._clients:
            client.abort()
        for _ in range(2):  # a connection may have been accepted, and its peer not be made yet
            self.broker.stop()
            self.coordinator.stop()
            await idle()


@asynccontextmanager
async def housed(work: Path, gate: Ask | None = passes, **chosen: Any) -> AsyncIterator[Rig]:
    """A running house, which asks for no rights unless it is given another gate, or None for the usual one."""
    rig = Rig(work, gate, **chosen)
    try:
        await rig.start()
        yield rig
    finally:
        await rig.stop()
