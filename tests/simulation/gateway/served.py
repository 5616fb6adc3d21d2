# SPDX-License-Identifier: Apache-2.0
"""The model cluster at a real port, as one broker without logins, for scripts that real brokers answer, too."""

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bench.ports import HOST, free_port_run
from coordinator.config import Address
from protocol.apis import ApiKey
from protocol.errors import ProtocolError
from protocol.framing import FrameReader
from protocol.wire import MAX_INT32
from tests.simulation.gateway.messages import answer, read_request
from tests.simulation.gateway.model import OFFERED, Caller, Model, api_versions
from tests.simulation.gateway.permits import SUPER_USER, Permits

BROKER = 1


class _Connection(asyncio.Protocol):
    """Answers each request at once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._transport: Any = None
        self._frames = FrameReader(MAX_INT32)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        try:
            header, request = read_request(frame)
        except (ProtocolError, KeyError):
            self._transport.close()
            return
        api, version = ApiKey(header.api_key), header.api_version
        if api is ApiKey.API_VERSIONS:
            told, versions = api_versions(version)
            self._transport.write(answer(api, told, header.correlation_id, versions))
            return
        low, high = OFFERED.get(api, (0, -1))
        if not low <= version <= high:
            self._transport.close()
            return
        caller = Caller(SUPER_USER, BROKER, header.client_id or "")
        fields = self._model.handle(caller, api, version, request)
        if fields is not None:
            self._transport.write(answer(api, version, header.correlation_id, fields))


@contextmanager
def served(topics: Mapping[str, int]) -> Iterator[tuple[str, Model]]:
    """Serve a model with these topics, by their partitions; gives its address."""
    port = free_port_run(1)
    model = Model(time.monotonic, {BROKER: Address(HOST, port)}, Permits())
    for name, count in topics.items():
        model.create_topic(name, count)
    loop = asyncio.new_event_loop()
    started, ended = threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = await loop.create_server(lambda: _Connection(model), HOST, port)
        started.set()
        await ended.wait()
        server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(60), "it does not listen"
        yield f"{HOST}:{port}", model
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
