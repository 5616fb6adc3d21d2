# SPDX-License-Identifier: Apache-2.0
"""Asks a handler as a client would: request and response go through the codec, a parked answer is waited for."""

import itertools
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from coordinator.api.context import PARKED, RequestContext, Work
from coordinator.api.table import Capabilities
from coordinator.authorization.authorizer import ALLOW_ALL, Authorizer
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.limits import TopicLimits
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topic_configs import END_GROUP
from coordinator.catalogue.topics import Draft
from coordinator.config import Settings
from coordinator.groups.config import GroupCoordinatorConfig, GroupEnvironment
from coordinator.logs.files.fetcher import FileLogFetcher
from coordinator.net.response_budget import ResponseBudget
from coordinator.node import CommittedOffsetSource
from coordinator.partitions.client_log_reads import LogReads
from coordinator.partitions.group_access import GroupAccess
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import Shard
from coordinator.runtime.clock import SystemClock
from coordinator.runtime.timers import Timer
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DURABLE, DurabilityTicket
from coordinator.topology.view import Broker, ClusterTopology, View
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import pack_api_key_and_version
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, Offset, Partition
from storage.format.records import OffsetAndMetadata
from storage.log_manager import LogManager
from tests.catalogue.disk import ManualThread, UnsyncedFileSystem
from tests.groups import harness
from tests.support.apis import APIS, SUPPORTED
from tests.support.files_in_memory import memory_log
from tests.support.ids import new_topic_id

CLUSTER_ID = "R3JvdXBrZWVwZXJUZXN0cw"
CAPABILITIES = Capabilities(APIS.values())
PARTITIONS = 13
"""So many that no two groups of a test are in the same one by chance."""
ENDPOINT = ("groups.example", 9092)


class CountedOffsets(dict[str, dict[int, OffsetAndMetadata]]):
    """Offsets by topic, and how often those of a topic were looked at."""

    looked_at = 0

    def get(self, topic: str, default: Any = None) -> Any:
        self.looked_at += 1
        return super().get(topic, default)


class Groups:
    """The groups of a node that leads every partition, but for those of groups that a test puts elsewhere."""

    def __init__(self) -> None:
        self.manager = GroupMetadataManager(
            GroupEnvironment(GroupCoordinatorConfig(), lambda: ""),
            SystemClock(),
            harness.FakeTimers(harness.FakeClock()),
            Stats(),
            num_partitions=PARTITIONS,
            deliver=lambda _reply, _flush: None,
        )
        for partition in range(PARTITIONS):
            self.manager.finish_load(self.manager.begin_load(Partition(partition)), harness.MemoryLog())

    def put_elsewhere(self, group_id: str, error: ErrorCode) -> None:
        """The partition of this group is another node's, or only about to be loaded."""
        partition = self.manager.partition_for(GroupId(group_id))
        self.manager.remove_groups_for_partition(partition)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.manager.begin_load(partition)
        assert self.manager.find_shard_or_error(GroupId(group_id)) is error

    def shard(self, group_id: str) -> Shard:
        """The partition of a group that is led here."""
        shard = self.manager.find_shard_or_error(GroupId(group_id))
        assert isinstance(shard, Shard), f"{group_id} is elsewhere"
        return shard

    def looked_at(self, group_id: str) -> int:
        """How often a topic of this group was looked at."""
        offsets = self.shard(group_id).groups[GroupId(group_id)].offsets.by_topic
        assert isinstance(offsets, CountedOffsets)
        return offsets.looked_at

    def commit(
        self,
        group_id: str,
        topic: str,
        offsets: Mapping[int, int],
        *,
        ticket: DurabilityTicket = DURABLE,
        at_ms: int = 0,
    ) -> None:
        """Let a group have these offsets."""
        shard = self.shard(group_id)
        kept = shard.groups.get(GroupId(group_id))
        if kept is None:
            kept = shard.add_or_get_existing(shard.make_uncached_group(GroupId(group_id)))
            kept.offsets.by_topic = CountedOffsets()
        kept.ticket = ticket
        kept.offsets.by_topic[topic] = {
            index: OffsetAndMetadata(
                offset=Offset(offset), leader_epoch=-1, metadata="", commit_timestamp=at_ms
            )
            for index, offset in offsets.items()
        }


class FakeTimers:
    """Keeps the calls to come, with their delays in milliseconds."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Timer]] = []

    def call_after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        timer = Timer(callback, argument)
        self.calls.append((delay_ms, timer))
        return timer

    def fire(self) -> None:
        _delay_ms, timer = self.calls.pop(0)
        timer.call()


class FakeNode:
    """A node with an id of 7 and a real catalogue on a disk that works when told to."""

    def __init__(self, data_dir: Path, **settings: Any) -> None:
        self.settings = msgspec.structs.replace(Settings(data_dir=data_dir), **settings)
        self.thread = ManualThread()
        self.catalogue_store = CatalogueStore(
            data_dir,
            self.thread.submit_with_callback,
            fs=UnsyncedFileSystem(),
            new_topic_id=new_topic_id,
            limits=TopicLimits.from_settings(self.settings),
        )
        self.catalogue: Catalogue = self.catalogue_store.load_or_create(
            self.settings.offsets_topic_num_partitions
        )
        self.timers = FakeTimers()
        self.groups = Groups()
        self.group_access = GroupAccess(self.groups.manager)
        self.node_id = 7
        self.cluster_id = CLUSTER_ID
        self.cluster = ClusterTopology(View((Broker(self.node_id, *ENDPOINT),), ()))
        self.stats = Stats()
        self.new_producer_id = itertools.count(4_000).__next__
        self.ends: CommittedOffsetSource | None = None
        self.authorizer: Authorizer = ALLOW_ALL
        self.offers = CAPABILITIES.offered_versions
        self.budget = ResponseBudget(self.stats, 1 << 30, 1 << 30)

    @cached_property
    def log(self) -> LogManager:
        """Made when a test first needs it."""
        return memory_log()

    @cached_property
    def reads(self) -> LogReads:
        return LogReads(FileLogFetcher(self.log, self.thread), self.timers, self.budget)

    def have(self, **partitions: int) -> Mapping[str, Topic]:
        """Create topics and return them by name."""
        return self._create(partitions, {})

    def have_ending(self, end_group: str, **partitions: int) -> None:
        """Create topics that end where this group has committed."""
        self._create(partitions, {END_GROUP: end_group})

    def _create(self, partitions: Mapping[str, int], configs: Mapping[str, str]) -> Mapping[str, Topic]:
        topics: dict[str, Topic] = {}

        def create(draft: Draft) -> None:
            for name, count in partitions.items():
                topic = draft.add_topic(
                    name, count, topic_id=self.catalogue_store.new_topic_id(), configs=configs
                )
                assert isinstance(topic, Topic), topic
                topics[name] = topic

        self.catalogue_store.submit_edit_with_callback(create, lambda _outcome: None)
        self.thread.run_all()
        return topics

    def names(self) -> list[str]:
        return [topic.name for topic in self.catalogue if not topic.is_internal]

    # --- asking ---

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        """The decoded response; the disk and the timers do what a parked answer waits for."""
        answers = Answers(key, version)
        self.start(answers, request)
        while not answers.bodies and (self.thread.waiting or self.timers.calls):
            if self.thread.waiting:
                self.thread.run_one()
            else:
                self.timers.fire()
        return answers.only

    def start(self, answers: "Answers", request: Any) -> RequestContext:
        """Hand a request in; its answer is in `answers`, now or later."""
        key, version = answers.key, answers.version
        codec = find_message_codec(key, version)
        decoded = codec.decode_request(codec.encode_request(request), 0)
        ctx = RequestContext(
            sink=answers,
            api_key=key,
            api_version=version,
            correlation_id=1,
            client_id="test",
            client_host="/127.0.0.1",
            api=CAPABILITIES.routes[pack_api_key_and_version(key, version)],
            request=decoded,
        )
        handle: Callable[..., Any] = APIS[key].handle
        response = handle(self, decoded, ctx)
        if response is not PARKED:
            answers.answer_parked_request(ctx, response)
        return ctx


class Answers:
    """The connection that a request came from: keeps what was answered, as bytes."""

    def __init__(self, key: ApiKey, version: int) -> None:
        self.key = key
        self.version = version
        self.bodies: list[bytes] = []

    def claim_first_api_use(self, api_key: int) -> bool:
        return not self.bodies

    def answer_parked_request(self, ctx: RequestContext, response: Any) -> None:
        self.bodies.append(find_message_codec(self.key, self.version).encode_response(response))

    def run_in_slices(self, ctx: RequestContext, work: Work) -> None:
        try:
            while True:
                next(work)
        except StopIteration as done:
            self.bodies.append(b"".join(done.value))

    @property
    def only(self) -> Any:
        assert len(self.bodies) == 1, f"{len(self.bodies)} answers to one request"
        return find_message_codec(self.key, self.version).decode_response(self.bodies[0], 0)


def error_response_of(key: ApiKey, version: int, request: Any, error: ErrorCode) -> Any:
    """What `error_response` says, after the codec."""
    codec = find_message_codec(key, version)
    decoded = codec.decode_request(codec.encode_request(request), 0)
    response = APIS[key].error_response(decoded, error, version)
    return codec.decode_response(codec.encode_response(response), 0)


def versions(key: ApiKey) -> range:
    low, high = SUPPORTED[key]
    return range(low, high + 1)
