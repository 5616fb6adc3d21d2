# SPDX-License-Identifier: Apache-2.0
"""What must hold inside of a node, whatever its clients saw."""

from coordinator.app import App
from coordinator.groups.metadata import GroupMetadata
from coordinator.groups.state import GroupState
from coordinator.partitions.shard import Shard
from storage.errors import StorageError
from storage.format.batch import iter_batches
from storage.format.loader import RecordLoader
from storage.format.transactions import LogReplay
from tests.simulation.clients import REBALANCE_MS, SESSION_MS
from tests.simulation.history import Broken

REBALANCE_S_MAX = REBALANCE_MS / 1000 + SESSION_MS / 1000 + 5
"""A join phase, a sync phase that begins when it ends, and the time between two looks."""
SILENCE_S_MAX = SESSION_MS / 1000 + REBALANCE_S_MAX
"""A session, and, where the end came within a rebalance, what that may take."""


def inspect(app: App, since: dict[str, float], served_since: float, now: float) -> None:
    """Check every group; `since` remembers how long each has been rebalancing. What stood still counts anew."""
    rebalancing = set()
    for group in app.manager.current_groups():
        _check_books(group)
        if group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
            key = f"{group.group_id} {group.state.value} {group.generation_id}"
            rebalancing.add(key)
            took = now - max(since.setdefault(key, now), served_since)
            if took > REBALANCE_S_MAX and not app.manager.loading_partitions:
                raise Broken("no rebalance lasts longer than its timeouts", f"{key}: {took:.0f} s")
    for key in set(since) - rebalancing:
        del since[key]


def check_silent(app: App, silent: dict[str, float], since: float, now: float) -> None:
    """Members whose process ended long ago are in no group any more."""
    if now - since < SILENCE_S_MAX:
        return
    for group in app.manager.current_groups():
        for member_id in group.members:
            if now - silent.get(member_id, now) > SILENCE_S_MAX:
                raise Broken("who is silent is out", f"{member_id} is in {group.group_id}")


def _check_books(group: GroupMetadata) -> None:
    waiting = sum(member.awaiting_join is not None for member in group.members.values())
    if group.num_members_awaiting_join != waiting:
        raise Broken("a group's books are right", f"{group.group_id}: {waiting} wait")
    if group.leader_id is not None and group.leader_id not in group.members:
        raise Broken("a leader is a member", f"{group.group_id}: {group.leader_id}")


def replayed_equals_live(app: App) -> None:
    """Where nothing is under way, a partition's log gives back what is in memory."""
    if not app.committer.idle or app.manager.loading_partitions or app.leadership.failed_partitions:
        return
    for partition, shard in app.manager.owned_partitions.items():
        try:
            again = replay(app, partition)
        except StorageError:
            return  # the disk was about to fail, whoever asked
        live, stored = offsets_of(shard), offsets_of(again)
        if live != stored:
            raise Broken("replay(log) = live state", f"partition {partition}: {live} != {stored}")
        for group in shard.groups.values():
            if group.state is GroupState.STABLE:
                _same_generation(group, again.groups.get(group.group_id))


def replay(app: App, partition: int) -> Shard:
    """What the log of a partition says."""
    shard = Shard(partition)
    log, end = app.log, app.log.end_offset(partition)
    replayed = LogReplay(RecordLoader())
    offset = log.log(partition).start_offset
    while offset < end:
        data, offset = log.read(partition, offset, 1 << 20)
        for batch in iter_batches(data, check=True):
            for record in replayed.replay(batch):
                shard.apply(record)
    return shard


def offsets_of(shard: Shard) -> dict[tuple[str, str, int], int]:
    """All committed offsets."""
    return {
        (group.group_id, topic, partition): committed.offset
        for group in shard.groups.values()
        for topic, partition, committed in group.all_offsets()
    }


def _same_generation(live: GroupMetadata, stored: GroupMetadata | None) -> None:
    def facts(group: GroupMetadata | None) -> object:
        if group is None:
            return None
        members = {member.member_id: member.assignment for member in group.members.values()}
        return group.generation_id, group.protocol_name, group.leader_id, members

    if facts(live) != facts(stored):
        raise Broken("replay(log) = live state", f"{live.group_id}: {facts(live)} != {facts(stored)}")
