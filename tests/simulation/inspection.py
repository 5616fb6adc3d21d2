# SPDX-License-Identifier: Apache-2.0
"""What must hold inside of a node, whatever its clients saw."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from coordinator.app import App
from coordinator.config.storage_settings import make_storage_settings
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.state import GroupState
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.logs.files.cleaner_task import cleaner_settings
from coordinator.partitions.shard import Shard
from protocol.newtypes import GroupId, Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.errors import StorageError
from storage.format.batch import iter_batches
from storage.format.record_decoder import RecordDecoder
from storage.format.transaction_replay import LogReplay
from storage.log_manager import LogManager
from tests.simulation.history import Broken
from tests.simulation.ledger import RETENTION_MS, PartitionBook
from tests.simulation.node import SimulatedNode, small
from tests.simulation.serdes import GroupValue, OffsetValue
from tests.simulation.settings import EXPIRY_INTERVAL_MS, REBALANCE_MS, ROOT, SESSION_MS
from tests.support.file_logs import get_files

if TYPE_CHECKING:
    from tests.simulation.world import World

REBALANCE_S_MAX = REBALANCE_MS / 1000 + SESSION_MS / 1000 + 5
"""A join phase, a sync phase that begins when it ends, and the time between two looks."""
SILENCE_S_MAX = SESSION_MS / 1000 + REBALANCE_S_MAX
"""A session, and, where the end came within a rebalance, what that may take."""
LOAD_S_MAX = 30.0
"""Longer than the slowest disk takes for a partition of a simulation."""
EXPIRES_LATE_S_MAX = 4 * EXPIRY_INTERVAL_MS / 1000
"""Two checks by which a clock is believed again, one that deletes, and some time for that."""

Facts = tuple[object, ...]


class Inspector:
    """Looks into a world's nodes, from time to time; what it has seen before shows how long something takes."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rebalancing: dict[str, float] = {}
        self._loading: dict[tuple[str, int], float] = {}
        self._refusing: dict[str, float] = {}
        self._led: dict[str, Facts] = {}

    def look_at_all(self, nodes: Sequence[SimulatedNode]) -> None:
        """Check what no node knows alone."""
        owners: dict[int, str] = {}
        for node in nodes:
            if node.app is not None:
                for partition in node.app.manager.owned_partitions:
                    if partition in owners:
                        raise Broken(
                            "a partition has one leader", f"{partition}: {owners[partition]} and {node.name}"
                        )
                    owners[partition] = node.name

    def look(self, node: SimulatedNode) -> None:
        """Check a node that serves."""
        app, now = node.app, self._world.loop.time()
        if app is None:
            return
        led = tuple(app.leadership.epochs.items())
        if app.manager.loading_partitions or self._led.get(node.name) != led:
            self._led[node.name] = led
            node.served_since = now
        self._check_rebalances(app, node, now)
        self._check_loads(app, node, now)
        self._check_silent(app, node, now)
        self._check_expired(app, node, now)
        if self._world.has_marks:
            _check_marks(app)

    def _check_rebalances(self, app: App, node: SimulatedNode, now: float) -> None:
        since, rebalancing = self._rebalancing, set()
        for group in _classic_groups(app):
            _check_books(group)
            if group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
                key = f"{node.name} {group.group_id} {group.state.value} {group.generation_id}"
                rebalancing.add(key)
                took = now - max(since.setdefault(key, now), node.served_since)
                if took > REBALANCE_S_MAX and not app.manager.loading_partitions:
                    raise Broken("no rebalance lasts longer than its timeouts", f"{key}: {took:.0f} s")
        for key in [key for key in since if key.startswith(f"{node.name} ")]:
            if key not in rebalancing:
                del since[key]

    def _check_loads(self, app: App, node: SimulatedNode, now: float) -> None:
        """Partitions that load, or failed to, and a log that takes nothing: none of that lasts on a good disk."""
        calm_since = max(node.runs_since, self._world.disk_good_since)
        name = node.name
        unserved = {*app.manager.loading_partitions, *app.leadership.failed_partitions}
        for key in [key for key in self._loading if key[0] == name and key[1] not in unserved]:
            del self._loading[key]
        for partition in unserved:
            began = self._loading.setdefault((name, partition), now)
            if now - max(began, calm_since) > LOAD_S_MAX:
                why = app.leadership.failed_partitions.get(partition, "it is loading")
                raise Broken("a load ends", f"partition {partition} at {name}: {why}")
        if not app.stats.log_refusing_since_ms:
            self._refusing.pop(name, None)
        elif now - max(self._refusing.setdefault(name, now), calm_since) > LOAD_S_MAX:
            raise Broken("a log is repaired", f"{name} refuses appends: {get_files(app).append_failure}")

    def _check_silent(self, app: App, node: SimulatedNode, now: float) -> None:
        """Members whose process ended long ago are in no group any more."""
        if now - node.served_since < SILENCE_S_MAX:
            return
        silent = self._world.silent
        for group in _classic_groups(app):
            for member_id in group.members:
                if now - silent.get(member_id, now) > SILENCE_S_MAX:
                    raise Broken("who is silent is out", f"{member_id} is in {group.group_id}")

    def _check_expired(self, app: App, node: SimulatedNode, now: float) -> None:
        """What could have expired for long is gone."""
        world = self._world
        if now - max(node.served_since, world.clock.jumped_at_s, world.disk_good_since) < EXPIRES_LATE_S_MAX:
            return
        before_ms = world.clock.wall_ms() - RETENTION_MS - int(EXPIRES_LATE_S_MAX * 1000)
        for kept in app.manager.current_groups():
            group = kept.classic_group
            if group.protocol_type is None:
                for topic, partition, committed in kept.offsets.all():
                    if committed.commit_timestamp < before_ms:
                        raise Broken("what has expired goes", f"{group.group_id} {topic} {partition}")
            elif group.state is GroupState.EMPTY and not group.pending_members:
                since = group.current_state_timestamp
                if since is not None and since < before_ms:
                    raise Broken("what has expired goes", f"{group.group_id}, Empty since {since}")

    # --- the log and memory

    def compact(self) -> None:
        """A start finds in a copy of the disk what was accepted, and compaction leaves it there."""
        world = self._world
        if any(
            not node.app.log.groups.is_idle or get_files(node.app).append_failure
            for node in world.nodes
            if node.app is not None
        ):
            return
        log = LogManager.open(ROOT, small(make_storage_settings(world.settings)), world.disk.copied())
        settings = msgspec.structs.replace(
            cleaner_settings(world.settings), min_cleanable_dirty_ratio=0.0, delete_retention_ms=0
        )
        cleaner = LogCleaner(
            log, settings, partial(write_cleaned_segments, log.file_system), world.clock.wall_ms
        )
        rule = "replay(log) = replay(compacted log) = live state"
        for partition in map(Partition, range(world.settings.offsets_topic_num_partitions)):
            book = world.ledger.found(partition, log.end_offset(partition))
            _same("replay(log) = live state", partition, book, replay(log, partition))
        while cleaner.clean_dirtiest() is not None:
            world.history.counts["compactions of copies"] += 1
        for partition in map(Partition, range(world.settings.offsets_topic_num_partitions)):
            _same(rule, partition, world.ledger.book(partition), replay(log, partition))

    def compare(self, node: SimulatedNode, *, again: bool) -> None:
        """Where nothing is under way: what was accepted is in memory; `again` reads the log itself as well."""
        app = node.app
        if (
            app is None
            or node.body is None
            or not app.log.groups.is_idle
            or get_files(app).append_failure is not None
        ):
            return
        files = get_files(app)
        for partition, shard in app.manager.owned_partitions.items():
            if partition in files.failed_partitions:
                continue
            book = self._world.ledger.found(partition, files.end_offset(partition))
            _same("the log = live state", partition, book, shard)
            if again:
                with node.body.disk.spared():
                    try:
                        replayed = replay(files, partition)
                    except StorageError:
                        continue  # it had failed, unnoticed
                self._world.history.counts["replays"] += 1
                _same("replay(log) = replay(compacted log) = live state", partition, book, replayed)


def replay(log: LogManager, partition: Partition) -> Shard:
    """What the log of a partition says as it is now, compacted here and there."""
    shard = Shard(partition)
    end = log.end_offset(partition)
    replayed = LogReplay(RecordDecoder())
    offset = log.get_or_create_log(partition).start_offset
    while offset < end:
        data, offset = log.read(partition, offset, 1 << 20)
        for batch in iter_batches(data, check=True):
            for record in replayed.replay(batch):
                shard.apply(record)
    return shard


def _same(rule: str, partition: int, book: PartitionBook, shard: Shard) -> None:
    for group_id in map(GroupId, book.groups.keys() | shard.groups.keys()):
        said, there = book.groups.get(group_id), shard.groups.get(group_id) or shard.hidden.get(group_id)
        offsets = {where: _offset_facts(value) for where, value in said.offsets.items()} if said else {}
        if there is None and group_id == shard.ledger.group_id:
            live = _offsets(shard.ledger.marks)
        else:
            live = _offsets(there.offsets) if there is not None else {}
        if offsets != live:
            raise Broken(rule, f"partition {partition}, {group_id}: {offsets} != {live}")
        value = said.value if said is not None else None
        if value is None:
            continue  # a group that was not stored yet may be in memory
        if there is None:
            raise Broken(rule, f"partition {partition}: {group_id} is missing")
        if there.classic_group.state in (GroupState.STABLE, GroupState.EMPTY):
            wanted, found = _group_facts(value), _live_facts(there.classic_group)
            if wanted != found:
                raise Broken(rule, f"partition {partition}, {group_id}: {wanted} != {found}")


def _classic_groups(app: App) -> Iterator[GroupMetadata]:
    return (kept.classic_group for kept in app.manager.current_groups())


def _offset_facts(value: OffsetValue) -> Facts:
    return value.offset, value.leader_epoch, value.metadata, value.commit_timestamp


def _offsets(offsets: CommittedOffsets) -> dict[tuple[str, int], Facts]:
    return {
        (topic, partition): (each.offset, each.leader_epoch, each.metadata, each.commit_timestamp)
        for topic, partition, each in offsets.all()
    }


def _group_facts(value: GroupValue) -> Facts:
    members = {each.member_id: each.assignment for each in value.members}
    leader, protocol = (value.leader, value.protocol) if members else (None, None)
    return value.generation, protocol, leader, members


def _live_facts(group: GroupMetadata) -> Facts:
    members = {member.member_id: member.assignment for member in group.members.values()}
    leader, protocol = (group.leader_id, group.protocol_name) if members else (None, None)
    return group.generation_id, protocol, leader, members


def _check_marks(app: App) -> None:
    for shard in app.manager.owned_partitions.values():
        for kept in shard.groups.values():
            if kept.offsets.count and not shard.ledger.is_ours(kept.group_id):
                mark = shard.ledger.get_mark(kept.group_id)
                raise Broken("what is here is marked", f"{kept.group_id}: {mark}")


def _check_books(group: GroupMetadata) -> None:
    waiting = sum(member.awaiting_join is not None for member in group.members.values())
    if group.num_members_awaiting_join != waiting:
        raise Broken("a group's books are right", f"{group.group_id}: {waiting} wait")
    if group.leader_id is not None and group.leader_id not in group.members:
        raise Broken("a leader is a member", f"{group.group_id}: {group.leader_id}")
