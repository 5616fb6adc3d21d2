# SPDX-License-Identifier: Apache-2.0
"""The server's edge without sockets and disks: real connections and apis, a transport that only remembers.

A test decides when a flush ends (`flush`), when the peer reads (`FakeTransport.drain`) and when time passes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from coordinator.api.context import deliver
from coordinator.api.table import Capabilities
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topics import Draft
from coordinator.config import Settings
from coordinator.groups.config import GroupCoordinatorConfig, GroupEnvironment
from coordinator.logs.files.committer import Committer, FileLogWriter, FlushMode
from coordinator.logs.files.fetcher import FileLogFetcher
from coordinator.logs.group_log import LogError
from coordinator.net.connection import Connection
from coordinator.net.connection_limits import ConnectionQuotas
from coordinator.net.fair_queue import FairQueue
from coordinator.net.response_budget import ResponseBudget
from coordinator.net.server import Server
from coordinator.node import Node
from coordinator.partitions.client_log_reads import LogReads
from coordinator.partitions.group_access import GroupAccess
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.timers import Timer
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket
from coordinator.topology.view import Broker, ClusterTopology, View
from protocol.framing import FrameReader
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.errors import StorageError
from storage.format.batch import BATCH_BYTES_MAX
from storage.format.records import Record, TopicOffsetCommits
from storage.journal.journal import Entry
from tests.catalogue.disk import ManualThread, UnsyncedFileSystem
from tests.groups.harness import FakeClock, FakeTimers
from tests.net.requests import OTHER_TOPIC, TOPIC
from tests.support.apis import APIS
from tests.support.files_in_memory import AtOnce, memory_log
from tests.support.idle import idle
from tests.support.ids import new_topic_id

CAPABILITIES = Capabilities(APIS.values())
PEER = ("127.0.0.1", 50_000)
WRITE_BUFFER_MAX = 64 * 1024
"""Where asyncio and uvloop begin to ask a protocol to write no more."""


class TransportCallbacks(Protocol):
    """What a transport calls."""

    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...


class FakeTransport(asyncio.Transport):
    """What the connection wrote; with `reads = False` the peer takes nothing and the bytes pile up."""

    def __init__(self, peer: tuple[str, int] = PEER) -> None:
        super().__init__()
        self.peer = peer
        self.protocol: TransportCallbacks | None = None
        self.sent = bytearray()
        self.writes = 0
        self.reads = True
        self.unsent_bytes = 0
        self.unsent_bytes_max = 0
        self.paused = False
        self.closed = False
        self.aborted = False
        self._full = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.peer if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed, "a write to a closed transport"
        self.sent += data
        self.writes += 1
        if not self.reads:
            self.unsent_bytes += len(data)
            self.unsent_bytes_max = max(self.unsent_bytes_max, self.unsent_bytes)
            if self.unsent_bytes > WRITE_BUFFER_MAX and not self._full:
                self._full = True
                assert self.protocol is not None
                self.protocol.pause_writing()

    def drain(self) -> None:
        """The peer reads all that waits for it, and goes on doing so."""
        self.reads = True
        self.unsent_bytes = 0
        if self._full:
            self._full = False
            assert self.protocol is not None
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        """As the real one: what was written still leaves, and nothing is heard of the peer any more."""
        if not self.closed:
            self.closed = True
            if not self.unsent_bytes:
                self._lose()

    def abort(self) -> None:
        if not self.aborted:
            self.closed = self.aborted = True
            self.unsent_bytes = 0
            self._lose()

    def _lose(self) -> None:
        assert self.protocol is not None
        asyncio.get_running_loop().call_soon(self.lost, None)

    def lost(self, error: Exception | None) -> None:
        """The end; from then on it does not know its protocol any more, as the real ones do."""
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(error)


class ManualLoop:
    """Keeps what is to be called soon until the test lets the loop turn."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], object]] = []

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._soon.append(callback)

    def turn(self) -> None:
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()


class MemoryLog:
    """Takes batches like a LogManager, or fails."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.entries: list[Entry] = []

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        if self.error is not None:
            raise self.error
        self.entries += entries


class EdgeTimers(FakeTimers):
    """Timers with all that a node's have."""

    def call_after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        timer = Timer(callback, argument)
        self.call_at(self.clock.mono_ms() + delay_ms, lambda _: timer.call())
        return timer


class Edge:
    """A node's server with one partition of groups and two topics, for connections with fake transports."""

    def __init__(
        self,
        data_dir: Path,
        *,
        request_bytes_max: int = 1 << 20,
        queued_bytes_max: int = 1 << 16,
        total_max: int = 1 << 20,
        per_address_max: int = 1 << 20,
        flush_by_itself: bool = True,
        turn_ns: int = 1 << 62,
        unsent_bytes_max: int = 1 << 62,
        unread_ms_max: int = 1 << 62,
        capabilities: Capabilities = CAPABILITIES,
        end_group: str | None = None,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        **config: Any,
    ) -> None:
        config.setdefault("initial_rebalance_delay_ms", 0)
        self.clock = FakeClock()
        self.timers = EdgeTimers(self.clock)
        self.stats = Stats()
        self.log, self.loop, self.disk = MemoryLog(), ManualLoop(), ManualThread()
        self.committer = Committer(
            self.loop,
            self.log,
            self.disk,
            self.clock,
            self.stats,
            FlushMode.ALWAYS,
            batch_bytes_max=batch_bytes_max,
            offset_value_version=3,
            compression=0,
        )
        self.writer = self.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
        self.records: list[Record] = []
        self.commits: list[TopicOffsetCommits] = []
        self.flush_by_itself = flush_by_itself
        suffixes = count(1)
        self.manager = GroupMetadataManager(
            GroupEnvironment(GroupCoordinatorConfig(**config), lambda: f"{next(suffixes):036d}"),
            self.clock,
            self.timers,
            self.stats,
            num_partitions=1,
            deliver=deliver,
            batch_bytes_max=batch_bytes_max,
        )
        self.manager.finish_load(self.manager.begin_load(Partition(0)), self)
        self.thread = ManualThread()
        settings = Settings(
            data_dir=data_dir,
            auto_create_topics_enable=False,
            end_group=end_group,
            message_max_bytes=batch_bytes_max,
        )
        store = CatalogueStore(
            data_dir, self.thread.submit_with_callback, fs=UnsyncedFileSystem(), new_topic_id=new_topic_id
        )
        self.budget = ResponseBudget(self.stats, unsent_bytes_max, unread_ms_max)
        self.node = Node(
            settings=settings,
            node_id=1,
            cluster_id="R3JvdXBrZWVwZXJUZXN0cw",
            cluster=ClusterTopology(View((Broker(1, "127.0.0.1", 9092),), ())),
            group_access=GroupAccess(self.manager),
            catalogue=store.load_or_create(settings.offsets_topic_num_partitions),
            catalogue_store=store,
            timers=self.timers,
            stats=self.stats,
            new_producer_id=count(4_000).__next__,
            offers=capabilities.offered_versions,
            reads=LogReads(FileLogFetcher(memory_log(), AtOnce()), self.timers, self.budget),
        )
        self._create_topics()
        self.server = Server(
            self.node,
            capabilities,
            self.stats,
            ConnectionQuotas(total_max, per_address_max),
            self.budget,
            request_bytes_max=request_bytes_max,
            queued_bytes_max=queued_bytes_max,
            frame_bounds=capabilities.frame_bounds(0),
            fair_queue=FairQueue(self.clock.nanos, turn_ns),
        )
        self.committer.on_failed = self._failed

    def _failed(self, writers: list[FileLogWriter], error: LogError) -> None:
        self.writer = self.committer.new_writer(Partition(0), self.writer.next_offset, LeaderEpoch(0))
        self.server.refuse_replies_of_lost_appends()

    def _create_topics(self) -> None:
        store = self.node.catalogue_store

        def create(draft: Draft) -> None:
            for name in (TOPIC, OTHER_TOPIC):
                draft.add_topic(name, 100, topic_id=store.new_topic_id())

        store.submit_edit_with_callback(create, lambda _outcome: None)
        self.thread.run_all()

    def configure(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Set settings of topics."""

        def edit(draft: Draft) -> None:
            for name, configs in topics.items():
                draft.replace_configs(name, configs)

        self.node.catalogue_store.submit_edit_with_callback(edit, lambda _outcome: None)
        self.thread.run_all()

    partition = Partition(0)
    leader_epoch = LeaderEpoch(0)

    def append(self, records: Sequence[Record]) -> DurabilityTicket:
        """Be the writer of the shard."""
        ticket = self.writer.append(records)
        self.records += records
        return self._appended(ticket)

    def append_offsets(self, commits: list[TopicOffsetCommits]) -> DurabilityTicket:
        """Take the offsets of one commit, as `append` takes records."""
        ticket = self.writer.append_offsets(commits)
        self.commits += commits
        return self._appended(ticket)

    def _appended(self, ticket: DurabilityTicket) -> DurabilityTicket:
        if self.flush_by_itself:
            self.flush()
        return ticket

    def begin_flush(self) -> None:
        """What was appended is on its way to the disk: what comes now goes with the next flush."""
        self.loop.turn()

    def end_flush(self) -> None:
        """What was on its way is durable now, or has failed."""
        self.disk.run_all()

    def flush(self) -> None:
        """What was appended is durable now."""
        self.begin_flush()
        self.end_flush()

    def fail_flush(self) -> None:
        """What was appended is lost; the groups stay as they are."""
        self.log.error = StorageError("journal", "the disk is gone")
        self.flush()
        self.log.error = None

    def connect(self, peer: tuple[str, int] = PEER) -> "Client":
        transport = FakeTransport(peer)
        connection = Connection(self.server)
        transport.protocol = connection
        connection.connection_made(transport)
        return Client(connection, transport)


class Client:
    """The other end of a connection."""

    def __init__(self, connection: Connection, transport: FakeTransport) -> None:
        self.connection = connection
        self.transport = transport
        self._read = 0
        self._frames: deque[bytes] = deque()

    def send(self, *frames: bytes) -> None:
        """Let bytes arrive, all at once, unless the server does not want to hear or has closed."""
        if not self.transport.closed:
            self.connection.data_received(b"".join(frames))

    def answers(self) -> list[bytes]:
        """The frames that arrived since the last call."""
        reader = FrameReader(1 << 30)
        fresh = bytes(self.transport.sent[self._read :])
        frames = reader.feed(fresh) if fresh else []
        assert not reader.buffered_bytes, "half a frame was written"
        self._read = len(self.transport.sent)
        return frames

    def correlation_ids(self) -> list[int]:
        """To which requests the frames belong that arrived since the last call."""
        return [int.from_bytes(frame[:4], "big") for frame in self.answers()]

    async def drop(self) -> None:
        """The peer goes away without a word."""
        self.transport.closed = True
        self.transport.lost(ConnectionResetError())
        await settle()


async def settle() -> None:
    """Let everything run that was called soon, and what that calls soon."""
    await idle()


async def turns_until_answered(client: Client) -> tuple[int, bytes]:
    """How many turns of the loop an answer takes, and the answer."""
    for turn in range(100_000):
        answers = client.answers()
        if answers:
            return turn, answers[0]
        await asyncio.sleep(0)
    raise AssertionError("no answer")
