# SPDX-License-Identifier: Apache-2.0
"""What `bench.instructions` runs under valgrind: one node, one connection, one request after the other.

It finds only what is installed (`python -P`), so it imports nothing of this folder. Between two calls of `mark` are
so many rounds of one scenario and nothing else: no sockets, no timers (the loop's clock stands still), no garbage
collector. What is counted is what a request costs from its bytes to those of its answer, with the log's write to the
page cache.
"""

import asyncio
import gc
import json
import os
import random
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from coordinator.app import App
from coordinator.catalogue.catalogue import Catalogue
from coordinator.config import Address, Settings
from coordinator.groups.rebalance_timings import RebalanceCause, RebalanceTimings
from coordinator.host_resources import HostResources
from coordinator.logs.files.file_log import FileLog
from coordinator.net.connection import Connection
from coordinator.net.fair_queue import FairQueue
from coordinator.runtime.clock import SystemClock
from coordinator.single_node import open_single_node
from coordinator.telemetry import logs
from coordinator.telemetry.recent_rebalances import CHARACTERS_MAX, CHARACTERS_PER_REBALANCE
from protocol import hot
from protocol.apis import ApiKey
from protocol.client_frames import LENGTH_BYTES, decode_answer, encode_request
from protocol.headers import RequestHeader
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId, Offset
from storage.disk.filesystem import RealFileSystem

WARM_UP: Final = 50
ROUNDS: Final = 500
GROUP: Final = GroupId("group")
TOPIC: Final = "orders"
PARTITIONS: Final = 100
CROWD: Final = 125
"""So many connections commit in one turn of the loop, each for a group of its own. It divides ROUNDS."""
WEIGHED: Final = 1_000


class StandingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be stopped, so that no timer fires while something is counted."""

    stands_at: float | None = None

    def time(self) -> float:
        """The loop's clock in seconds."""
        return super().time() if self.stands_at is None else self.stands_at


class Wire(asyncio.Transport):
    """Takes what the node answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep it."""
        self.answer = bytes(data)

    def get_write_buffer_size(self) -> int:
        """All has left at once."""
        return 0

    def pause_reading(self) -> None:
        """One request is under way at a time."""

    def resume_reading(self) -> None:
        """As above."""

    def close(self) -> None:
        """Nothing is to be closed."""


class Client:
    """The one connection of the node."""

    def __init__(self, app: App) -> None:
        assert app.server is not None
        self._wire = Wire()
        self._connection = Connection(app.server)
        self._connection.connection_made(self._wire)

    def send(self, frame: bytes) -> None:
        """Ask; the answer may come in a later turn."""
        self._wire.answer = b""
        self._connection.data_received(frame)

    @property
    def answer(self) -> bytes:
        """What came last, if anything has come since the last request."""
        return self._wire.answer

    async def round(self, frame: bytes) -> bytes:
        """Ask, and let the loop turn once, in which a flush is made."""
        self._connection.data_received(frame)
        await asyncio.sleep(0)
        return self._wire.answer

    async def ask(self, api: ApiKey, version: int, message: Any) -> Any:
        """The decoded answer, however many turns it takes."""
        self.send(frame_of(api, version, message))
        while not self.answer:  # noqa: ASYNC110 - nothing else would set an event
            await asyncio.sleep(0)
        return decoded(api, version, self.answer)


def frame_of(api: ApiKey, version: int, message: Any, correlation_id: int = 1) -> bytes:
    """A whole request."""
    return encode_request(
        find_message_codec(api, version), RequestHeader(api, version, correlation_id, "counted"), message
    )


def decoded(api: ApiKey, version: int, answer: bytes) -> Any:
    """The response in an answer, which has its length, the correlation id and perhaps tagged fields before it."""
    return decode_answer(find_message_codec(api, version), api, answer, LENGTH_BYTES)


# --- scenarios: the requests of one round, by its number ---


class Member:
    """The only member of a group, and what it asks."""

    def __init__(self, member_id: MemberId, generation: int, group: GroupId = GROUP) -> None:
        self.member_id = member_id
        self.generation = generation
        self.group = group

    @classmethod
    async def join(cls, client: Client, group: GroupId = GROUP) -> "Member":
        """Join and sync."""
        joined = await client.ask(ApiKey.JOIN_GROUP, 3, cls(MemberId(""), -1, group).join_request())
        member = cls(joined.member_id, joined.generation_id, group)
        synced = await client.ask(ApiKey.SYNC_GROUP, 4, member.sync_request(member.generation))
        assert joined.error_code == synced.error_code == 0
        return member

    def join_request(self) -> hot.JoinGroupRequest:
        """A leader that joins again starts a rebalance, and as no other member has to come it ends at once."""
        return hot.JoinGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            protocol_type="consumer",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            protocols=[
                hot.JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\1\0\6orders" + bytes(8))
            ],
        )

    def sync_request(self, generation: int) -> hot.SyncGroupRequest:
        """Assign the topic's partition to itself."""
        assignment = hot.SyncGroupRequestAssignment(
            member_id=self.member_id, assignment=b"\0\1\0\0\0\1\0\6orders" + bytes(12)
        )
        return hot.SyncGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[assignment],
        )

    def heartbeat(self, number: int) -> Iterator[bytes]:
        """As a client sends it every three seconds: the same each time."""
        message = hot.HeartbeatRequest(
            group_id=self.group, member_id=self.member_id, generation_id=self.generation
        )
        yield frame_of(ApiKey.HEARTBEAT, 4, message, number)

    def commit(self, number: int) -> Iterator[bytes]:
        """One partition's next offset."""
        yield self._commit(number, 1)

    def commit_many(self, number: int) -> Iterator[bytes]:
        """Those of all partitions."""
        yield self._commit(number, PARTITIONS)

    def _commit(self, number: int, partitions: int) -> bytes:
        rows = [
            hot.OffsetCommitRequestPartition(partition_index=index, committed_offset=Offset(number + index))
            for index in range(partitions)
        ]
        message = hot.OffsetCommitRequest(
            group_id=self.group,
            member_id=self.member_id,
            generation_id_or_member_epoch=self.generation,
            topics=[hot.OffsetCommitRequestTopic(name=TOPIC, partitions=rows)],
        )
        return frame_of(ApiKey.OFFSET_COMMIT, 9, message, number)

    def fetch(self, number: int) -> Iterator[bytes]:
        """One partition's offset."""
        yield self._fetch(number, 1)

    def fetch_many(self, number: int) -> Iterator[bytes]:
        """Those of all partitions."""
        yield self._fetch(number, PARTITIONS)

    def _fetch(self, number: int, partitions: int) -> bytes:
        topics = [hot.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(partitions)))]
        group = hot.OffsetFetchRequestGroup(group_id=self.group, topics=topics)
        return frame_of(ApiKey.OFFSET_FETCH, 9, hot.OffsetFetchRequest(groups=[group]), number)

    def rejoin(self, number: int) -> Iterator[bytes]:
        """A whole rebalance: a join and a sync; the generation is one higher each time."""
        yield frame_of(ApiKey.JOIN_GROUP, 9, self.join_request(), number)
        yield frame_of(ApiKey.SYNC_GROUP, 5, self.sync_request(self.generation + number), number)


Make = Callable[[int], Iterator[bytes]]


def mark() -> None:
    """Tell valgrind to write down what was counted: it looks for calls of this function of libc."""
    os.getsid(0)


async def count(client: Client, make: Make) -> bytes:
    """One scenario between two marks; returns the last answer."""
    frames = [frame for number in range(1, WARM_UP + ROUNDS + 1) for frame in make(number)]
    warm_up = len(frames) * WARM_UP // (WARM_UP + ROUNDS)
    for frame in frames[:warm_up]:
        await client.round(frame)
    answer = b""
    mark()
    for frame in frames[warm_up:]:
        answer = await client.round(frame)
    mark()
    return answer


async def count_crowd(app: App) -> bytes:
    """Commits of many connections between two marks; returns an answer.

    With a turn for each request, though all of a round share a flush: so many are taken off everywhere.
    """
    groups = [GroupId(f"crowd-{number:03}") for number in range(CROWD)]
    crowd = [(Client(app), Member(MemberId(""), -1, group)) for group in groups]
    rounds = [
        [(client, frame) for client, member in crowd for frame in member.commit(number)]
        for number in range(1, 2 + ROUNDS // CROWD)
    ]
    for number, each in enumerate(rounds):
        if number == 1:
            mark()
        for client, frame in each:
            client.send(frame)
        for _ in each:
            await asyncio.sleep(0)
        assert all(client.answer for client, _ in each), "not all are answered"
    mark()
    return crowd[0][0].answer


async def count_turns() -> None:
    """What the loop's turns and the marks themselves cost, for as many rounds of one request."""
    for _ in range(WARM_UP):
        await asyncio.sleep(0)
    mark()
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    mark()


async def weigh(app: App, client: Client) -> int:
    """How many bytes of memory a new group takes that has one member and one offset."""
    tracemalloc.start()  # before the record is filled, or what leaves it would not count
    fill_recent_rebalances(app)
    await make_groups(app, client, "warm", WARM_UP)
    before_bytes, _ = tracemalloc.get_traced_memory()
    await make_groups(app, client, "weighed", WEIGHED)
    after_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after_bytes - before_bytes) // WEIGHED


def fill_recent_rebalances(app: App) -> None:
    """Fill the bounded record of rebalances, as on a node that has run for a while: a new one replaces another."""
    recent = app.manager.recent_rebalances
    for number in range(CHARACTERS_MAX // CHARACTERS_PER_REBALANCE):
        rebalance = RebalanceTimings(RebalanceCause.MEMBER_JOINED, number)
        rebalance.leader_id = f"{number:050}"
        recent.add(GroupId(f"full-{number:07}"), rebalance)


async def make_groups(app: App, client: Client, prefix: str, count: int) -> None:
    """Make groups, and put what waits for its segment there."""
    for number in range(count):
        member = await Member.join(client, GroupId(f"{prefix}-{number:04}"))
        (frame,) = member.commit(number)
        await client.round(frame)
    assert isinstance(app.log.groups, FileLog)
    await app.io.run_blocking(app.log.groups.files.write_behind)


async def run(loop: StandingLoop, data_dir: Path) -> None:
    """Start a node, count every scenario, stop."""
    settings = Settings(
        data_dir=data_dir,
        listen=Address("127.0.0.1", 0),
        metrics_listen=None,
        log_flush="os",
        offsets_topic_num_partitions=50,
        group_initial_rebalance_delay_ms=0,
        log_cleaner_enable=False,
    )
    machine = HostResources(RealFileSystem(), SystemClock(), random_bytes=random.Random(0).randbytes)
    app = open_single_node(settings, loop, machine)
    await app.start()
    while not app.leadership.has_loaded_all_partitions:  # noqa: ASYNC110 - nor here
        await asyncio.sleep(0)
    await create_topic(app)
    assert app.server is not None
    app.server.fair_queue = FairQueue(
        app.clock.nanos, turn_ns=1 << 60
    )  # the clock on the wall decides on nothing
    client = Client(app)
    member = await Member.join(client)
    await app.io.run_blocking(lambda: None)  # nothing else runs from here on
    loop.stands_at = loop.time()
    gc.collect()
    gc.disable()
    await count_turns()
    checked = (
        ("heartbeat", member.heartbeat, ApiKey.HEARTBEAT, 4),
        ("commit", member.commit, ApiKey.OFFSET_COMMIT, 9),
        ("fetch", member.fetch, ApiKey.OFFSET_FETCH, 9),
        ("commit_many", member.commit_many, ApiKey.OFFSET_COMMIT, 9),
        ("fetch_many", member.fetch_many, ApiKey.OFFSET_FETCH, 9),
        ("join", member.rejoin, ApiKey.SYNC_GROUP, 5),
    )
    for name, make, api, version in checked:
        check(name, decoded(api, version, await count(client, make)))
    check("commit_crowd", decoded(ApiKey.OFFSET_COMMIT, 9, await count_crowd(app)))
    print(json.dumps({"group_bytes": await weigh(app, client)}), flush=True)
    loop.stands_at = None
    await app.stop()


def check(name: str, answer: Any) -> None:
    """Raise AssertionError for an answer that is not wholly good."""
    assert "error_code=" not in (text := repr(answer).replace("error_code=0", "")), f"{name}: {text}"


async def create_topic(app: App) -> None:
    """As an operator would, before anything is counted."""
    assert app.server is not None
    store = app.server.node.catalogue_store
    done = asyncio.get_running_loop().create_future()

    def create(draft: Catalogue) -> None:
        draft.add_topic(TOPIC, PARTITIONS, topic_id=store.new_topic_id())

    store.submit_edit_with_callback(create, done.set_result)
    assert await done is None


def main() -> None:
    """Count; the first line that is printed says which modules were counted."""
    import coordinator.net.connection as counted

    print(json.dumps({"connection": str(counted.__file__), "rounds": ROUNDS}), flush=True)
    logs.configure("json", "warning")  # lines are written by a thread, whose turns cannot be foreseen
    loop = StandingLoop()
    with tempfile.TemporaryDirectory() as work:
        loop.run_until_complete(run(loop, Path(work)))


if __name__ == "__main__":
    main()
