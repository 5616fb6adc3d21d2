# SPDX-License-Identifier: Apache-2.0
"""A gateway asks our coordinators for itself: what is long gives way to all that the gateway forwards."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any, TypeVar

from coordinator.api.private.adopt_group import API, parse_offsets_in_steps
from coordinator.api.slices import ITEMS_PER_SLICE
from coordinator.cluster_requests.model import TopicPartition, TransferredOffset
from coordinator.config import Address
from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.connector import Connector
from coordinator.gateway.our_coordinator_client import OurCoordinatorClient
from coordinator.migration.model import ClusterReading
from coordinator.migration.private_requests import ROWS_AT_ONCE
from coordinator.runtime.sockets import make_stream_socket
from protocol.apis import ApiKey
from protocol.headers import decode_request_header, encode_response
from protocol.kafka_python_messages import FindCoordinatorResponse
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId
from protocol.stepwise_message_writer import ITEMS_PER_STEP

T = TypeVar("T")

FIND_COORDINATOR_VERSION = 4
NODE_ID = 1_000_000
COUNT = 5_000
GROUP = GroupId("large")
CONFIG = GatewayConfig(
    host="127.0.0.1",
    port_base=20_000,
    max_connections=10,
    max_connections_per_ip=10,
    idle_ms=600_000,
    request_bytes_max=100 * 1024 * 1024,
)


class CountedOffsets(Mapping[TopicPartition, TransferredOffset]):
    """Offsets that count how many of them were taken."""

    def __init__(self, offsets: dict[TopicPartition, TransferredOffset]) -> None:
        self.all = offsets
        self.taken = 0

    def __getitem__(self, place: TopicPartition) -> TransferredOffset:
        return self.all[place]

    def __iter__(self) -> Iterator[TopicPartition]:
        for place in self.all:
            self.taken += 1
            yield place

    def __len__(self) -> int:
        return len(self.all)


def many(count: int, partitions: int) -> CountedOffsets:
    """So many offsets, in topics of so many partitions."""
    places = (TopicPartition(f"topic-{n // partitions}", n % partitions) for n in range(count))
    return CountedOffsets(
        {place: TransferredOffset(n, n % 7, "m" * (n % 3)) for n, place in enumerate(places)}
    )


class Turns:
    """How many offsets were taken in one turn of the loop, at most."""

    def __init__(self, offsets: CountedOffsets) -> None:
        self._offsets = offsets
        self._before = 0
        self.most = 0
        self._next: asyncio.Handle = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        taken = self._offsets.taken
        self.most = max(self.most, taken - self._before)
        self._before = taken
        self._next = asyncio.get_running_loop().call_soon(self._turn)

    def close(self) -> None:
        self._next.cancel()


def at_once(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What the steps come to, and how many there were."""
    count = 1
    while True:
        try:
            next(steps)
            count += 1
        except StopIteration as end:
            result: T = end.value
            return result, count


class PlayedNode:
    """A coordinator that takes over whatever it is given."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        header, pos = decode_request_header(frame, True)
        writer.write(encode_response(header.correlation_id, self._answer(header.api_key, frame, pos), True))
        await writer.drain()
        writer.close()

    def _answer(self, api_key: int, frame: bytes, pos: int) -> bytes:
        if api_key == ApiKey.FIND_COORDINATOR:
            kind = FindCoordinatorResponse.Coordinator
            found = kind(version=FIND_COORDINATOR_VERSION, key=GROUP, node_id=NODE_ID, error_code=0)
            response = FindCoordinatorResponse(version=FIND_COORDINATOR_VERSION, coordinators=[found])
            return find_message_codec(ApiKey.FIND_COORDINATOR, FIND_COORDINATOR_VERSION).encode_response(
                response
            )
        codec = API.schema.codecs[0]
        request = codec.decode_request(frame, pos)
        self.got.append(request)
        make: Any = API.schema.response
        return codec.encode_response(make(version=0, error_code=0, adopted=True, taken=1))


@asynccontextmanager
async def coordinators(node: PlayedNode) -> AsyncIterator[OurCoordinatorClient]:
    """The way to a coordinator that is played."""
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    async with server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        book = AddressBook(CONFIG.client_address_for, lambda _id, _address: None)
        book.set_our_nodes({NODE_ID: OurNode(NODE_ID, address, address)})
        yield OurCoordinatorClient(loop, book, Connector(loop, CONFIG, make_stream_socket), 30.0)


async def test_a_very_large_adoption_is_written_in_many_turns() -> None:
    for partitions in (1, 3, COUNT):
        node = PlayedNode()
        offsets = many(COUNT, partitions)
        async with coordinators(node) as here:
            with closing(Turns(offsets)) as turns:
                stored = await here.adopt(GROUP, ClusterReading(offsets, 0, 0))
        assert stored.taken == 1
        assert 0 < turns.most <= ROWS_AT_ONCE + ITEMS_PER_STEP + 1
        found, steps = at_once(parse_offsets_in_steps(node.got[0].offsets))
        assert found == offsets.all
        assert steps >= len(offsets) // ITEMS_PER_SLICE


def test_topics_without_partitions_take_steps_too() -> None:
    kind: Any = API.schema.request
    topics = [kind.AdoptedTopic(topic=f"t{n}", partitions=[]) for n in range(1_000)]
    found, steps = at_once(parse_offsets_in_steps(topics))
    assert found == {}
    assert steps >= len(topics) // ITEMS_PER_SLICE
