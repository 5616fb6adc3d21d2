# SPDX-License-Identifier: Apache-2.0
"""Groups that are taken over from a cluster and given back: no order of things brings an older offset back."""

import random
from collections.abc import AsyncIterator, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.api import private
from coordinator.api.private import adopt_group, close_group, give_back_group, locate_groups
from coordinator.api.table import Capabilities, load_declared_apis
from coordinator.cluster_requests.model import TopicPartition, TransferredOffset
from coordinator.jobs.expiry_task import delete_expired_marks, delete_expired_offsets
from coordinator.migration.ledger import CONFIRMED_ABSENT_MAX, is_ledger, ledger_group_id
from coordinator.migration.model import STALE, ClusterReading, Ownership
from coordinator.migration.private_requests import CloseGroupStep
from coordinator.partitions.group_adoption import (
    AT_ONCE,
    CLOSED_MS,
    CONFIRMED_ABSENT_MS,
    READING_MS,
    Adoptions,
)
from coordinator.tickets import ReplyDependencies
from protocol.apis import ApiKey
from protocol.bounds import ITEMS_MAX
from protocol.client_frames import encode_request
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from protocol.newtypes import LEDGER_PREFIX, GroupId, LeaderEpoch, Partition
from protocol.placement import partition_for
from storage.format.batch import iter_records
from storage.format.records import OffsetCommitRecord, decode_key_and_value
from tests.net import requests
from tests.net.edge import Client, settle
from tests.partitions.running import Refused, commit_error, fetched
from tests.partitions.test_any_log import LOST, PARTITIONS, Led, answer
from tests.support.log_lines import captured

NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
CAPABILITIES = Capabilities([*load_declared_apis(), *load_declared_apis(private)])
MANY = {index: index for index in range(AT_ONCE + 200)}
Offsets = Mapping[int, int]


class Gateway:
    """What a gateway asks a coordinator, and what its clients do."""

    def __init__(self, led: Led) -> None:
        self.led = led
        self.client: Client = led.edge.connect()

    async def ask(self, frame: bytes) -> bytes:
        self.client.send(frame)
        return await answer(self.client)

    async def adopt(
        self, group: str, offsets: Offsets | None, metadata: str = "", epoch: int | None = None
    ) -> tuple[ErrorCode, bool, int]:
        """(error, whether it is taken over, how many offsets were taken or -1); with the epoch of now, or that one."""
        mark = await self.mark(group)
        heard = (mark.epoch if epoch is None else epoch, mark.asked_ms)
        body = adopted(await self.ask(adopt_frame(group, offsets, metadata, heard)))
        return ErrorCode(body.error_code), body.adopted, body.taken

    async def mark(self, group: str) -> Any:
        """The answer to the question how it is with a group."""
        return adopted(await self.ask(adopt_frame(group, None)))

    async def locate(self, *groups: str, discard_readings: bool = False) -> list[bool]:
        """Which groups are here."""
        values = {"group_ids": list(groups), "discard_readings": discard_readings}
        frame = await self.ask(frame_of(locate_groups.API, values))
        located: Any = locate_groups.API.schema.codecs[0].decode_response(frame, 5)
        assert located.error_code == NONE
        return list(located.here)

    async def adopt_unknown(self, group: str) -> Any:
        """The answer where the cluster knows nothing of the group."""
        mark = await self.mark(group)
        heard = (mark.epoch, mark.asked_ms)
        return adopted(await self.ask(adopt_frame(group, {}, heard=heard, unknown=True)))

    async def give_back(self, group: str, offsets: Offsets, metadata: str = "") -> ErrorCode:
        frame = await self.ask(give_back_frame(group, offsets, metadata))
        return ErrorCode(give_back_group.API.schema.codecs[0].decode_response(frame, 5).error_code)

    async def step(self, group: str, step: int) -> ErrorCode:
        """Ask whether a group could be given back, close it, or open it."""
        frame = await self.ask(frame_of(close_group.API, {"group_id": group, "step": step}))
        return ErrorCode(close_group.API.schema.codecs[0].decode_response(frame, 5).error_code)

    async def close(self, group: str) -> ErrorCode:
        return await self.step(group, CloseGroupStep.CLOSE)

    async def join(self, group: str, version: int = 3) -> ErrorCode:
        """The error of a JoinGroup; of version 3 it is answered when the member has formed a group alone."""
        frame = await self.ask(requests.join(group, version=version))
        return ErrorCode(requests.answer(ApiKey.JOIN_GROUP, version, frame).error_code)

    async def delete_offset(self, group: str, partition: int) -> ErrorCode:
        kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
        part = kind.OffsetDeleteRequestPartition(partition_index=partition)
        request = OffsetDeleteRequest(group_id=group, topics=[kind(name=requests.TOPIC, partitions=[part])])
        frame = await self.ask(requests.request(ApiKey.OFFSET_DELETE, 0, request))
        return ErrorCode(requests.answer(ApiKey.OFFSET_DELETE, 0, frame).error_code)

    async def describe(self, group: str) -> tuple[ErrorCode, str]:
        request = DescribeGroupsRequest(groups=[group])
        frame = await self.ask(requests.request(ApiKey.DESCRIBE_GROUPS, 0, request))
        (described,) = requests.answer(ApiKey.DESCRIBE_GROUPS, 0, frame).groups
        return ErrorCode(described.error_code), described.group_state

    async def commit(self, group: str, offsets: Offsets) -> ErrorCode:
        return commit_error(await self.ask(requests.commit(group, dict(offsets))))

    async def fetch(self, group: str) -> dict[int, int] | ErrorCode:
        try:
            return fetched(await self.ask(requests.fetch_offsets(group)))
        except Refused as refused:
            return refused.error

    async def delete(self, group: str) -> ErrorCode:
        frame = await self.ask(
            requests.request(ApiKey.DELETE_GROUPS, 0, DeleteGroupsRequest(groups_names=[group]))
        )
        (result,) = requests.answer(ApiKey.DELETE_GROUPS, 0, frame).results
        return ErrorCode(result.error_code)

    async def list(self) -> set[str]:
        frame = await self.ask(requests.request(ApiKey.LIST_GROUPS, 0, ListGroupsRequest()))
        return {group.group_id for group in requests.answer(ApiKey.LIST_GROUPS, 0, frame).groups}

    async def reload(self, epoch: int) -> None:
        """Give all partitions away, and lead them again."""
        for partition in PARTITIONS:
            self.led.leadership.resign(partition, LeaderEpoch(2 * epoch - 1))
            await self.led.log.release(partition)
        await self.led.lead(2 * epoch)

    @property
    def adoptions(self) -> Adoptions:
        return Adoptions(self.led.manager)


def table(offsets: Offsets) -> dict[TopicPartition, TransferredOffset]:
    return {
        TopicPartition(requests.TOPIC, index): TransferredOffset(offset) for index, offset in offsets.items()
    }


def break_off(steps: Generator[None, None, object], after: int) -> None:
    """Take so many steps, and no more: the gateway that has asked for them is gone."""
    for _ in range(after):
        if next(steps, steps) is steps:
            return
    steps.close()


def frame_of(api: Any, values: dict[str, Any]) -> bytes:
    header = RequestHeader(api.key, 0, 1, "gateway")
    return encode_request(api.schema.codecs[0], header, api.schema.request(version=0, **values))


def topics_of(kind: Any, part: str, offsets: Offsets, metadata: str) -> list[Any]:
    rows = [
        getattr(kind, part)(
            version=0,
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=metadata,
        )
        for index, offset in offsets.items()
    ]
    return [kind(version=0, topic=requests.TOPIC, partitions=rows)] if rows else []


def adopted(frame: bytes) -> Any:
    return adopt_group.API.schema.codecs[0].decode_response(frame, 5)


def adopt_frame(
    group: str,
    offsets: Offsets | None,
    metadata: str = "",
    heard: tuple[int, int] = (0, 0),
    *,
    unknown: bool = False,
) -> bytes:
    kind = adopt_group.API.schema.request.AdoptedTopic
    topics = None if offsets is None else topics_of(kind, "AdoptedPartition", offsets, metadata)
    values = {
        "group_id": group,
        "epoch": heard[0],
        "asked_ms": heard[1],
        "unknown": unknown,
        "offsets": topics,
    }
    return frame_of(adopt_group.API, values)


def give_back_frame(group: str, offsets: Offsets, metadata: str = "") -> bytes:
    kind = give_back_group.API.schema.request.GivenTopic
    topics = topics_of(kind, "GivenPartition", offsets, metadata)
    return frame_of(give_back_group.API, {"group_id": group, "offsets": topics})


@pytest.fixture
async def led(tmp_path: Path) -> AsyncIterator[Led]:
    led = Led(tmp_path, capabilities=CAPABILITIES, request_bytes_max=1 << 22)
    led.manager.needs_marks = True
    await led.lead()
    yield led
    await led.leadership.cancel_all_loads()


@pytest.fixture
async def gateway(led: Led) -> Gateway:
    return Gateway(led)


@pytest.fixture
def group(led: Led) -> str:
    return led.groups[1]


async def test_a_group_is_taken_over_once(gateway: Gateway, group: str) -> None:
    assert await gateway.adopt(group, None) == (NONE, False, -1)
    assert await gateway.adopt(group, {0: 5, 3: 7}) == (NONE, True, 2)
    assert await gateway.fetch(group) == {0: 5, 3: 7}
    assert await gateway.commit(group, {0: 6}) is NONE
    assert await gateway.adopt(group, {0: 5, 4: 9}) == (NONE, True, -1)
    assert await gateway.adopt(group, None) == (NONE, True, -1)
    assert await gateway.fetch(group) == {0: 6, 3: 7}


async def test_a_request_that_took_nothing_over_says_so(gateway: Gateway, group: str) -> None:
    """A group without offsets is taken over with none of them, once."""
    frames = [adopt_frame(group, {}, heard=await heard(gateway, group)) for _ in range(2)]
    answers = [adopted(await gateway.ask(frame)) for frame in frames]
    assert [(each.adopted, each.taken) for each in answers] == [(True, 0), (True, -1)]


async def test_a_group_that_may_be_at_the_cluster_is_not_spoken_of(gateway: Gateway, group: str) -> None:
    assert await gateway.fetch(group) is LOADING
    assert await gateway.commit(group, {0: 1}) is LOADING
    frame = await gateway.ask(requests.join(group, version=3))
    assert requests.answer(ApiKey.JOIN_GROUP, 3, frame).error_code == LOADING
    assert await gateway.adopt(group, {}) == (NONE, True, 0)
    assert await gateway.fetch(group) == {}
    assert await gateway.commit(group, {0: 1}) is NONE


async def test_a_group_that_may_be_at_the_cluster_has_no_members_here(gateway: Gateway, group: str) -> None:
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    beat = requests.answer(ApiKey.HEARTBEAT, 4, await gateway.ask(requests.heartbeat(group, "m", 3)))
    sync = requests.answer(ApiKey.SYNC_GROUP, 4, await gateway.ask(requests.sync(group, "m", 3)))
    left = requests.answer(ApiKey.LEAVE_GROUP, 4, await gateway.ask(requests.leave(group, "m")))
    assert beat.error_code == sync.error_code == left.members[0].error_code == unknown
    for version, error in {8: ErrorCode.ILLEGAL_GENERATION, 9: ErrorCode.GROUP_ID_NOT_FOUND}.items():
        frame = requests.commit(group, {0: 1}, member_id="m", generation=3, version=version)
        assert commit_error(await gateway.ask(frame), version) is error
    assert await gateway.adopt(group, None) == (NONE, False, -1)


@pytest.mark.parametrize("epochs", [0, 1, 2])
async def test_a_group_that_was_deleted_is_not_taken_over_again(
    gateway: Gateway, group: str, epochs: int
) -> None:
    await gateway.adopt(group, {0: 5})
    assert await gateway.delete(group) is NONE
    for epoch in range(1, epochs + 1):
        await gateway.reload(epoch)
    assert await gateway.adopt(group, {0: 5}) == (NONE, True, -1)
    assert await gateway.fetch(group) == {}


async def test_a_group_that_has_offsets_here_keeps_them(gateway: Gateway, group: str) -> None:
    gateway.led.manager.needs_marks = False
    assert await gateway.commit(group, {0: 9}) is NONE
    gateway.led.manager.needs_marks = True
    assert await gateway.fetch(group) == {0: 9}
    assert await gateway.adopt(group, {0: 5, 1: 5}) == (NONE, True, -1)
    await gateway.reload(1)
    assert await gateway.fetch(group) == {0: 9}


@pytest.mark.parametrize(("offsets", "metadata"), [(MANY, ""), (dict.fromkeys(range(300), 1), "x" * 4_000)])
async def test_what_fits_in_no_batch_is_taken_over_in_parts_and_given_back(
    gateway: Gateway, group: str, offsets: Offsets, metadata: str
) -> None:
    assert await gateway.adopt(group, offsets, metadata) == (NONE, True, len(offsets))
    await gateway.reload(1)
    assert await gateway.fetch(group) == offsets
    assert await gateway.give_back(group, offsets, metadata) is NONE
    await gateway.reload(2)
    assert await gateway.adopt(group, None) == (NONE, False, -1)
    assert gateway.led.manager.env.usage.offsets == 1, "how often a group was given back"


async def test_a_group_with_more_partitions_than_a_request_of_clients_may_name_moves(
    gateway: Gateway, group: str
) -> None:
    offsets = {index: index for index in range(ITEMS_MAX + 1_000)}
    assert await gateway.adopt(group, offsets) == (NONE, True, len(offsets))
    assert await gateway.give_back(group, offsets) is NONE
    assert gateway.led.manager.env.usage.offsets == 1


async def test_who_moved_a_group_is_logged(gateway: Gateway, group: str) -> None:
    changes = gateway.led.edge.node.group_access.outside_changes
    with captured() as log:
        await gateway.adopt(group, {0: 5, 3: 7})
        await gateway.adopt(group, {0: 5, 3: 7})
        changes.write_due_lines()
        assert await gateway.give_back(group, {0: 5}) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert await gateway.give_back(group, {0: 5, 3: 7}) is NONE
        changes.write_due_lines()
    who = {"group": group, "client_id": "gateway", "address": "/127.0.0.1"}
    at_0, at_3 = f"{requests.TOPIC}-0", f"{requests.TOPIC}-3"
    assert log.fields("a group was taken over from the cluster") == [
        {**who, "offsets": 2, "moved": {at_0: (None, 5), at_3: (None, 7)}}
    ]
    assert log.fields("a group was given back to the cluster") == [
        {**who, "offsets": 2, "moved": {at_0: (5, None), at_3: (7, None)}}
    ]


# --- which groups are here ---


async def test_here_is_a_group_that_is_marked_or_has_something_here(gateway: Gateway, group: str) -> None:
    other = next(name for name in gateway.led.groups if name != group)
    assert await gateway.locate(group, other) == [False, False]
    gateway.led.manager.needs_marks = False
    await gateway.commit(other, {0: 1})
    gateway.led.manager.needs_marks = True
    await gateway.adopt(group, {0: 5})
    assert await gateway.locate(other, group) == [True, True]
    assert await gateway.give_back(group, {0: 5}) is NONE
    assert await gateway.locate(other, group) == [True, False]


async def test_a_group_that_was_deleted_here_is_here(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    assert await gateway.delete(group) is NONE
    await gateway.reload(1)
    assert await gateway.locate(group) == [True]


async def test_a_group_is_here_as_long_as_somebody_is_in_it(gateway: Gateway, group: str) -> None:
    await gateway.adopt_unknown(group)
    assert await gateway.locate(group) == [False]
    await gateway.ask(requests.join(group, version=4))
    assert await gateway.locate(group) == [True]
    kept = gateway.led.manager.find(GroupId(group))
    assert kept is not None
    clock = gateway.led.edge.clock
    clock.passed_ms += CONFIRMED_ABSENT_MS
    gateway.led.manager.carry_out_outcome(
        kept, kept.group.expire_due_deadlines(gateway.led.manager.env, clock.now(), clock.mono_ms())
    )
    assert await gateway.locate(group) == [False]


async def test_a_group_that_is_only_being_taken_over_is_not_here(gateway: Gateway, group: str) -> None:
    break_off(
        gateway.adoptions.adopt(ReplyDependencies(), GroupId(group), ClusterReading(table(MANY), 0, 0)),
        after=3,
    )
    assert await gateway.locate(group) == [False]


async def test_of_what_the_node_does_not_serve_it_says_why_itself(gateway: Gateway, group: str) -> None:
    ledger = ledger_group_id(partition_for(GroupId(group), len(PARTITIONS)), len(PARTITIONS))
    assert await gateway.locate(ledger) == [True]
    for partition in PARTITIONS:
        gateway.led.leadership.resign(partition, LeaderEpoch(1))
    assert await gateway.locate(group) == [True]
    assert await gateway.fetch(group) is ErrorCode.NOT_COORDINATOR


async def test_of_many_groups_it_is_said_in_slices_which_are_here(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    names = [group if number % 7 == 0 else f"{group}-{number}" for number in range(1_000)]
    assert await gateway.locate(*names) == [name == group for name in names]


@pytest.mark.parametrize("discards", [True, False])
async def test_what_was_read_before_something_was_deleted_at_the_cluster_is_not_stored(
    gateway: Gateway, group: str, discards: bool
) -> None:
    mark = await gateway.mark(group)  # and then the cluster is read
    assert await gateway.locate(group, discard_readings=discards) == [False]
    body = adopted(await gateway.ask(adopt_frame(group, {0: 5}, heard=(mark.epoch, mark.asked_ms))))
    assert (ErrorCode(body.error_code), body.adopted) == ((STALE, False) if discards else (NONE, True))


async def test_a_deletion_at_the_cluster_ends_an_adoption_that_is_under_way(
    gateway: Gateway, group: str
) -> None:
    steps = gateway.adoptions.adopt(
        ReplyDependencies(),
        GroupId(group),
        ClusterReading(table(MANY), 0, (await gateway.mark(group)).asked_ms),
    )
    for _ in range(3):
        next(steps)
    assert await gateway.locate(group, discard_readings=True) == [False]
    assert finish(steps) == Ownership(STALE)
    assert await gateway.fetch(group) is LOADING


async def test_a_part_of_an_adoption_is_of_no_group_and_is_cleared_away(gateway: Gateway, group: str) -> None:
    break_off(
        gateway.adoptions.adopt(ReplyDependencies(), GroupId(group), ClusterReading(table(MANY), 0, 0)),
        after=3,
    )
    gateway.led.manager.needs_marks = False  # even where none is needed
    for epoch in (1, 2):
        assert await gateway.fetch(group) is LOADING
        assert await gateway.commit(group, {0: 1}) is LOADING
        assert group not in await gateway.list()
        assert await gateway.adopt(group, None) == (NONE, False, -1)
        await gateway.reload(epoch)
    assert await gateway.adopt(group, {1: 3}) == (NONE, True, 1)
    await gateway.reload(3)
    assert await gateway.fetch(group) == {1: 3}


async def test_a_group_is_given_back_only_as_it_is(gateway: Gateway, group: str) -> None:
    assert await gateway.give_back(group, {}) is ErrorCode.GROUP_ID_NOT_FOUND
    await gateway.adopt(group, {0: 5, 1: 6})
    for others in ({0: 5}, {0: 5, 1: 7}, {0: 5, 1: 6, 2: 7}, {0: 5, 2: 6}):
        assert await gateway.give_back(group, others) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert await gateway.give_back(group, {0: 5, 1: 6}, "words") is ErrorCode.OFFSET_OUT_OF_RANGE
    assert await gateway.fetch(group) == {0: 5, 1: 6}
    assert await gateway.give_back(group, {0: 5, 1: 6}) is NONE
    assert await gateway.fetch(group) is LOADING
    assert await gateway.give_back(group, {}) is ErrorCode.GROUP_ID_NOT_FOUND
    assert await gateway.adopt(group, {0: 8}) == (NONE, True, 1)
    assert await gateway.fetch(group) == {0: 8}


async def test_a_group_with_members_is_not_given_back(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {})
    await gateway.ask(requests.join(group, version=3))
    assert await gateway.give_back(group, {}) is ErrorCode.NON_EMPTY_GROUP
    assert await gateway.adopt(group, None) == (NONE, True, -1)


# --- closed groups ---


def pass_time(gateway: Gateway, ms: int) -> None:
    gateway.led.edge.clock.passed_ms += ms


async def test_what_is_closed_is_read_and_not_changed(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5, 1: 6})
    before = await gateway.fetch(group), await gateway.describe(group), await gateway.list()
    beat = await gateway.ask(requests.heartbeat(group, "m", 3))
    assert await gateway.close(group) is NONE
    assert await gateway.commit(group, {0: 7}) is LOADING
    assert await gateway.join(group) is LOADING
    assert await gateway.delete_offset(group, 0) is LOADING
    assert await gateway.delete(group) is LOADING
    assert (await gateway.fetch(group), await gateway.describe(group), await gateway.list()) == before
    assert await gateway.ask(requests.heartbeat(group, "m", 3)) == beat
    assert await gateway.step(group, CloseGroupStep.REOPEN) is NONE
    assert await gateway.commit(group, {0: 7}) is NONE
    assert await gateway.delete_offset(group, 1) is NONE
    assert await gateway.fetch(group) == {0: 7}
    assert await gateway.join(group) is NONE


async def test_what_has_nothing_but_its_mark_can_be_closed(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {})
    assert await gateway.close(group) is NONE
    assert await gateway.commit(group, {0: 7}) is LOADING
    assert await gateway.join(group) is LOADING
    assert await gateway.give_back(group, {}) is NONE


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_closed_group_opens_by_itself(gateway: Gateway, group: str, goes_on: bool) -> None:
    """So long after the last request of its mover, whether that closes it again or tries to take it away."""
    await gateway.adopt(group, {0: 5})
    await gateway.close(group)
    pass_time(gateway, CLOSED_MS - 1)
    assert await gateway.commit(group, {0: 7}) is LOADING
    if goes_on:
        assert await gateway.close(group) is NONE
    else:
        assert await gateway.give_back(group, {}) is ErrorCode.OFFSET_OUT_OF_RANGE
    pass_time(gateway, CLOSED_MS - 1)
    assert await gateway.commit(group, {0: 7}) is LOADING
    pass_time(gateway, 1)
    assert await gateway.commit(group, {0: 7}) is NONE
    assert await gateway.fetch(group) == {0: 7}


async def test_another_leader_opens_it(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    await gateway.close(group)
    await gateway.reload(1)
    assert await gateway.commit(group, {0: 7}) is NONE


async def test_to_be_asked_or_to_be_tried_closes_nothing(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    assert await gateway.step(group, CloseGroupStep.ASK) is NONE
    assert await gateway.commit(group, {0: 6}) is NONE
    assert await gateway.give_back(group, {}) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert await gateway.commit(group, {0: 7}) is NONE


@pytest.mark.parametrize("step", [CloseGroupStep.ASK, CloseGroupStep.CLOSE])
async def test_what_cannot_go_is_not_closed(gateway: Gateway, group: str, step: CloseGroupStep) -> None:
    assert await gateway.step(group, step) is ErrorCode.GROUP_ID_NOT_FOUND
    await gateway.adopt(group, {0: 5})
    await gateway.join(group)
    assert await gateway.step(group, step) is ErrorCode.NON_EMPTY_GROUP
    shard = gateway.led.manager.owned_partitions[partition_for(GroupId(group), len(PARTITIONS))]
    assert shard.ledger.closed == {}
    ledger = ledger_group_id(shard.partition, len(PARTITIONS))
    assert await gateway.step(ledger, step) is ErrorCode.INVALID_GROUP_ID
    assert await gateway.step(group, 3) is ErrorCode.INVALID_REQUEST


async def test_who_has_only_been_given_an_id_is_no_member(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    assert await gateway.join(group, version=4) is ErrorCode.MEMBER_ID_REQUIRED
    assert await gateway.close(group) is NONE
    assert await gateway.give_back(group, {0: 5}) is NONE


async def test_a_group_that_is_being_deleted_or_moved_is_not_closed_yet(gateway: Gateway, group: str) -> None:
    adoptions, group_id = gateway.adoptions, GroupId(group)
    adopting = adoptions.adopt(
        ReplyDependencies(), group_id, ClusterReading(table(MANY), *await heard(gateway, group))
    )
    next(adopting)
    assert adoptions.check_give_back(ReplyDependencies(), group_id, close=True) is LOADING
    assert finish(adopting).is_adopted
    kept = gateway.led.manager.find(group_id)
    assert kept is not None
    kept.group.suspend_as_dead()
    assert adoptions.check_give_back(ReplyDependencies(), group_id, close=True) is LOADING
    kept.group.resume_as_empty()
    assert adoptions.check_give_back(ReplyDependencies(), group_id, close=True) is NONE
    giving = adoptions.remove_group_if_unchanged(ReplyDependencies(), group_id, table(MANY))
    next(giving)
    assert adoptions.check_give_back(ReplyDependencies(), group_id, close=True) is LOADING


async def test_a_closed_group_is_given_back_and_forgotten(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    await gateway.close(group)
    assert await gateway.give_back(group, {0: 5}) is NONE
    assert await gateway.adopt(group, {0: 6}) == (NONE, True, 1)
    assert await gateway.commit(group, {0: 7}) is NONE


async def test_what_has_opened_by_itself_is_forgotten_when_another_is_closed(gateway: Gateway) -> None:
    partition = partition_for(GroupId(gateway.led.groups[0]), len(PARTITIONS))
    names = [
        name
        for name in (f"group-{n}" for n in range(50))
        if partition_for(GroupId(name), len(PARTITIONS)) == partition
    ]
    for name in names:
        await gateway.adopt(name, {0: 5})
        assert await gateway.close(name) is NONE
        pass_time(gateway, CLOSED_MS // 2)
    assert list(gateway.led.manager.owned_partitions[partition].ledger.closed) == names[-2:]


async def heard(gateway: Gateway, group: str) -> tuple[int, int]:
    mark = await gateway.mark(group)
    return mark.epoch, mark.asked_ms


@pytest.mark.parametrize("epochs", [0, 1, 2])
async def test_what_was_read_before_a_group_came_and_went_is_not_stored(
    gateway: Gateway, group: str, epochs: int
) -> None:
    asleep = (await gateway.mark(group)).epoch  # and then the cluster's {0: 5} is read
    await gateway.adopt(group, {0: 5})
    assert await gateway.commit(group, {0: 6}) is NONE
    assert await gateway.give_back(group, {0: 6}) is NONE
    for epoch in range(1, epochs + 1):
        await gateway.reload(epoch)
    assert await gateway.adopt(group, {0: 5}, epoch=asleep) == (STALE, False, -1)
    assert await gateway.fetch(group) is LOADING
    assert await gateway.adopt(group, {0: 6}) == (NONE, True, 1)


async def test_what_was_read_before_a_give_back_that_was_broken_off_is_not_stored(
    gateway: Gateway, group: str
) -> None:
    asleep = (await gateway.mark(group)).epoch
    await gateway.adopt(group, MANY)
    steps: Any = gateway.adoptions.remove_group_if_unchanged(ReplyDependencies(), GroupId(group), table(MANY))
    break_off(steps, after=5)  # it is to go: the cluster's offsets count
    assert await gateway.adopt(group, {0: 5}, epoch=asleep) == (STALE, False, -1)
    assert await gateway.adopt(group, {0: 7}) == (NONE, True, 1)


@pytest.mark.parametrize(("later_ms", "error"), [(READING_MS, NONE), (READING_MS + 1, STALE), (-1, STALE)])
async def test_what_was_read_long_ago_is_not_stored(
    gateway: Gateway, group: str, later_ms: int, error: ErrorCode
) -> None:
    clock = gateway.led.edge.clock
    clock.passed_ms += 100
    mark = await gateway.mark(group)
    clock.passed_ms += later_ms  # of another clock, where it goes back
    body = adopted(await gateway.ask(adopt_frame(group, {0: 5}, heard=(mark.epoch, mark.asked_ms))))
    assert (ErrorCode(body.error_code), body.adopted) == (error, error is NONE)


async def test_a_group_that_is_nowhere_may_be_asked_for_and_leaves_nothing(gateway: Gateway) -> None:
    usage, topic = gateway.led.manager.env.usage, gateway.led.topic
    for number in range(2 * CONFIRMED_ABSENT_MAX):
        answer = await gateway.adopt_unknown(f"none-{number}")
        assert (answer.error_code, answer.adopted, answer.confirmed_absent, answer.taken) == (
            NONE,
            False,
            True,
            -1,
        )
        assert await gateway.fetch(f"none-{number}") == {}
    assert usage.offsets == 0
    assert not any(map(list, topic.batches.values()))
    confirmed_absent = [
        len(shard.ledger.confirmed_absent) for shard in gateway.led.manager.owned_partitions.values()
    ]
    assert max(confirmed_absent) <= CONFIRMED_ABSENT_MAX
    assert await gateway.delete("none-0") in (ErrorCode.GROUP_ID_NOT_FOUND, LOADING)


async def test_a_group_is_nowhere_for_a_moment_only(gateway: Gateway, group: str) -> None:
    await gateway.adopt_unknown(group)
    assert (await gateway.mark(group)).confirmed_absent
    gateway.led.edge.clock.passed_ms += CONFIRMED_ABSENT_MS
    assert not (await gateway.mark(group)).confirmed_absent
    assert await gateway.adopt(group, {0: 5}) == (NONE, True, 1), "the cluster has it by now"
    assert await gateway.fetch(group) == {0: 5}
    assert not (await gateway.mark(group)).confirmed_absent


async def test_a_group_that_begins_is_marked_with_its_first_record(gateway: Gateway, group: str) -> None:
    await gateway.adopt_unknown(group)
    assert await gateway.commit(group, {0: 1}) is NONE
    answer = await gateway.mark(group)
    assert (answer.adopted, answer.confirmed_absent) == (True, False)
    await gateway.reload(1)
    assert await gateway.adopt(group, {0: 5}) == (NONE, True, -1)
    assert await gateway.fetch(group) == {0: 1}


async def test_a_group_whose_members_are_still_joining_stays_nowhere_until_it_is_stored(
    gateway: Gateway, group: str
) -> None:
    await gateway.adopt_unknown(group)
    await gateway.ask(requests.join(group, version=3))
    gateway.led.edge.clock.passed_ms += CONFIRMED_ABSENT_MS
    for number in range(3 * CONFIRMED_ABSENT_MAX):  # whatever is asked for meanwhile
        await gateway.adopt_unknown(f"none-{number}")
    answer = await gateway.mark(group)
    assert (answer.adopted, answer.confirmed_absent) == (False, True)
    assert await gateway.commit(group, {0: 1}) is not LOADING


async def test_a_request_that_comes_late_does_not_begin_what_was_nowhere(
    gateway: Gateway, group: str
) -> None:
    """A gateway, or this node, stood still, and the group has begun at the cluster meanwhile."""
    await gateway.adopt_unknown(group)
    gateway.led.edge.clock.passed_ms += CONFIRMED_ABSENT_MS
    assert await gateway.commit(group, {0: 1}) is LOADING
    assert await gateway.adopt(group, {0: 500}) == (NONE, True, 1)
    assert await gateway.fetch(group) == {0: 500}


@pytest.mark.parametrize("is_dead", [True, False])
async def test_who_wanted_to_join_and_never_came_keeps_no_group_from_the_cluster(
    gateway: Gateway, group: str, is_dead: bool
) -> None:
    await gateway.adopt_unknown(group)
    await gateway.ask(requests.join(group, version=4))
    assert (await gateway.mark(group)).confirmed_absent
    kept = gateway.led.manager.find(GroupId(group))
    assert kept is not None
    assert kept.group.has_members_or_pending, "the member id that was given out"
    clock = gateway.led.edge.clock
    clock.passed_ms += CONFIRMED_ABSENT_MS
    gateway.led.manager.carry_out_outcome(
        kept, kept.group.expire_due_deadlines(gateway.led.manager.env, clock.now(), clock.mono_ms())
    )
    if is_dead:
        await delete_expired_offsets(gateway.led.manager, clock)
    assert not (await gateway.mark(group)).confirmed_absent
    assert await gateway.adopt(group, {0: 500}) == (NONE, True, 1)
    assert await gateway.fetch(group) == {0: 500}
    await gateway.reload(1)
    assert await gateway.fetch(group) == {0: 500}


async def expire(gateway: Gateway) -> list[GroupId]:
    """Let the periodic job run; returns the groups of which the gateways are told that they are the cluster's."""
    manager, clock = gateway.led.manager, gateway.led.edge.clock
    await delete_expired_offsets(manager, clock)
    told: list[GroupId] = []
    adoptions = gateway.adoptions
    adoptions.on_given_back = told.append
    await delete_expired_marks(adoptions, clock)
    return told


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_the_mark_of_a_group_that_began_here_outlives_it_for_as_long_as_offsets_are_kept(
    gateway: Gateway, group: str, is_deleted: bool
) -> None:
    clock, retention_ms = gateway.led.edge.clock, gateway.led.manager.env.config.offsets_retention_ms
    await gateway.adopt_unknown(group)
    await gateway.commit(group, {0: 1})
    asleep = (await gateway.mark(group)).epoch
    clock.passed_ms += retention_ms
    if is_deleted:
        assert await gateway.delete(group) is NONE
    assert await expire(gateway) == []
    assert await gateway.fetch(group) == {}
    await gateway.reload(1)
    clock.passed_ms += retention_ms - 1
    assert await expire(gateway) == []
    assert (await gateway.mark(group)).adopted
    clock.passed_ms += 1
    assert await expire(gateway) == [group]
    await gateway.reload(2)
    assert not (await gateway.mark(group)).adopted
    assert await gateway.adopt(group, {0: 1}, epoch=asleep) == (STALE, False, -1)
    assert gateway.led.manager.env.usage.offsets == 1, "the count"


async def test_the_mark_of_a_group_that_is_there_or_that_came_from_the_cluster_stays(
    gateway: Gateway, group: str
) -> None:
    clock, retention_ms = gateway.led.edge.clock, gateway.led.manager.env.config.offsets_retention_ms
    other = next(name for name in gateway.led.groups if name != group)
    await gateway.adopt(other, {0: 5})
    await gateway.adopt_unknown(group)
    assert await gateway.give_back(group, {}) is ErrorCode.GROUP_ID_NOT_FOUND
    await gateway.commit(group, {0: 1})
    for _ in range(3):
        clock.passed_ms += retention_ms - 1
        await gateway.commit(group, {0: 1})
        assert await expire(gateway) == []
    assert await gateway.fetch(other) == {}
    assert (await gateway.mark(group)).adopted
    assert await gateway.adopt(other, {0: 5}) == (NONE, True, -1)


async def test_no_client_sees_or_touches_a_ledger(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    ledger = ledger_group_id(Partition(1), len(PARTITIONS))
    for needs_marks in (True, False):
        gateway.led.manager.needs_marks = needs_marks
        assert await gateway.list() == {group}
        assert await gateway.fetch(ledger) == {}
        assert await gateway.commit(ledger, {0: 5}) is ErrorCode.INVALID_GROUP_ID
        assert await gateway.delete(ledger) is ErrorCode.GROUP_ID_NOT_FOUND
        frame = await gateway.ask(
            requests.request(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=[ledger]))
        )
        (described,) = requests.answer(ApiKey.DESCRIBE_GROUPS, 0, frame).groups
        assert (described.group_state, described.members) == ("Dead", [])
        assert (await gateway.adopt(ledger, {0: 1}))[0] is ErrorCode.INVALID_GROUP_ID
        assert await gateway.give_back(ledger, {}) is ErrorCode.INVALID_GROUP_ID
    assert await gateway.adopt(group, None) == (NONE, True, -1)


async def test_the_mark_is_a_record_that_kafkas_tools_read(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    (batch,) = gateway.led.topic.batches[Partition(1)]
    records = [decode_key_and_value(key, value) for _, _, key, value in iter_records(batch)]
    found = [
        (record.group, record.topic, record.partition, record.value.offset)
        for record in records
        if isinstance(record, OffsetCommitRecord) and record.value is not None
    ]
    ledger = ledger_group_id(Partition(1), len(PARTITIONS))
    assert sorted(found) == [(ledger, group, 0, 0), (group, requests.TOPIC, 0, 5)]


async def test_expiry_and_deleted_topics_leave_the_ledger_alone(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    manager = gateway.led.manager
    for _ in manager.delete_offsets_of_topics(frozenset({group, requests.TOPIC})):
        pass
    for kept in list(manager.current_groups()):
        sum(manager.expire_offsets_in_steps(kept, 1 << 60))
    await gateway.reload(1)
    assert await gateway.adopt(group, {0: 5}) == (NONE, True, -1)
    assert await gateway.fetch(group) == {}


def drop_topic(gateway: Gateway, *topics: str) -> None:
    """The topic of all offsets here was deleted at the cluster, and this node hears it."""
    for _ in gateway.led.manager.delete_offsets_of_topics(frozenset(topics)):
        pass


def finish(steps: Generator[None, None, Ownership]) -> Ownership:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        found: Ownership = end.value
        return found


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("heard_of", [(requests.TOPIC,), ()], ids=["known", "came and went unheard"])
async def test_what_was_read_before_a_topic_went_is_not_stored(
    gateway: Gateway, group: str, heard_of: tuple[str, ...], moves: bool
) -> None:
    mark = await gateway.mark(group)  # and then the cluster is read
    drop_topic(gateway, *heard_of)
    gateway.led.edge.clock.passed_ms += 1
    if moves:  # to a leader that has not dropped it
        await gateway.reload(1)
    heard = (mark.epoch, mark.asked_ms)
    body = adopted(await gateway.ask(adopt_frame(group, {0: 5}, heard=heard)))
    assert (ErrorCode(body.error_code), body.adopted) == (STALE, False)
    assert await gateway.fetch(group) is LOADING
    assert await gateway.adopt(group, {}) == (NONE, True, 0)
    await gateway.reload(2)
    assert await gateway.fetch(group) == {}


@pytest.mark.parametrize("begun", [0, 12], ids=["while it is written", "while what is void is cleared away"])
async def test_a_topic_that_goes_while_a_group_is_taken_over_is_not_stored(
    gateway: Gateway, group: str, begun: int
) -> None:
    reading = ClusterReading(table(MANY), 0, (await gateway.mark(group)).asked_ms)
    if begun:
        break_off(gateway.adoptions.adopt(ReplyDependencies(), GroupId(group), reading), after=begun)
        reading = reading._replace(offsets=table({0: 5}))
    steps = gateway.adoptions.adopt(ReplyDependencies(), GroupId(group), reading)
    for _ in range(3):
        next(steps)
    drop_topic(gateway, requests.TOPIC)
    gateway.led.edge.clock.passed_ms += 1
    assert finish(steps) == Ownership(STALE)
    assert await gateway.fetch(group) is LOADING
    assert await gateway.adopt(group, {}) == (NONE, True, 0)
    await gateway.reload(1)
    assert await gateway.fetch(group) == {}


async def test_what_came_while_a_topic_was_dropped_is_not_dropped_with_it(
    gateway: Gateway, group: str
) -> None:
    """The group went to the cluster, where the topic was made anew, and is here again."""
    await gateway.adopt(group, MANY)
    dropping = gateway.led.manager.delete_offsets_of_topics(frozenset([requests.TOPIC]))
    next(dropping)
    gateway.led.edge.clock.passed_ms += 1
    left = await gateway.fetch(group)
    assert isinstance(left, dict)
    assert await gateway.give_back(group, left) is NONE
    assert await gateway.adopt(group, MANY) == (NONE, True, len(MANY))
    for _ in dropping:
        pass
    assert await gateway.fetch(group) == MANY


async def test_there_is_room_for_so_many_marks_and_offsets(tmp_path: Path) -> None:
    led = Led(tmp_path, capabilities=CAPABILITIES)
    led.manager.needs_marks = True
    await led.lead()
    usage = led.manager.env.usage
    gateway = Gateway(led)
    usage.offsets += led.manager.env.config.limits.max_offsets - 3
    assert (await gateway.adopt(led.groups[0], {0: 1, 1: 1, 2: 1}))[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await gateway.adopt(led.groups[0], {0: 1, 1: 1}) == (NONE, True, 2)
    await led.leadership.cancel_all_loads()


@pytest.mark.parametrize("offsets", [{0: -1}, {-1: 1}])
async def test_what_is_no_offset_is_refused(gateway: Gateway, group: str, offsets: Offsets) -> None:
    assert (await gateway.adopt(group, offsets))[0] is ErrorCode.INVALID_REQUEST
    assert await gateway.give_back(group, offsets) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_each_partition_has_a_book_that_belongs_to_it(partitions: int) -> None:
    ledgers = [ledger_group_id(Partition(partition), partitions) for partition in reversed(range(partitions))]
    assert [partition_for(ledger, partitions) for ledger in ledgers] == list(reversed(range(partitions)))
    assert all(map(is_ledger, ledgers))
    assert ledger_group_id(Partition(0), 1) == f"{LEDGER_PREFIX}0"


class Story:
    """A cluster and a coordinator, to which anything happens; and what is true of one group."""

    def __init__(self, seed: int, gateway: Gateway) -> None:
        self.rng = random.Random(seed)
        self.gateway = gateway
        self.group = GroupId(gateway.led.groups[0])
        self.cluster: dict[int, int] = {}
        """What it has committed; older than what is here once the group was taken over."""
        self.here: dict[int, int] | None = None
        """What is committed here; None while the cluster has the group."""
        self.next_offset = 1
        self.epoch = 0
        self.asleep: ClusterReading | None = None
        """What an adopter has read before it fell asleep."""
        self.opens_ms = 0
        """When the group opens by itself, if it is closed."""

    def new_offsets(self) -> dict[int, int]:
        self.next_offset += 1
        count = AT_ONCE + 50 if self.rng.random() < 0.1 else self.rng.randrange(1, 4)
        return dict.fromkeys(range(count), self.next_offset)

    async def step(self) -> None:
        happens = [
            self.work_at_the_cluster,
            self.adopt,
            self.commit,
            self.delete,
            self.reload,
            self.give_back,
            self.fall_asleep,
            self.wake,
            self.expire,
            self.close,
            self.reopen,
            self.wait,
        ]
        await self.rng.choice([*happens, self.hang_up, self.commit])()
        await self.check()

    @property
    def is_closed(self) -> bool:
        return self.opens_ms > self.gateway.led.edge.clock.mono_ms()

    async def close(self) -> None:
        error = await self.gateway.close(self.group)
        assert error is (ErrorCode.GROUP_ID_NOT_FOUND if self.here is None else NONE)
        if self.here is not None:
            self.opens_ms = self.gateway.led.edge.clock.mono_ms() + CLOSED_MS

    async def reopen(self) -> None:
        assert await self.gateway.step(self.group, CloseGroupStep.REOPEN) is NONE
        self.opens_ms = 0

    async def wait(self) -> None:
        """Too long, perhaps, for what was closed."""
        pass_time(self.gateway, self.rng.choice([CLOSED_MS // 3, CLOSED_MS]))

    async def work_at_the_cluster(self) -> None:
        asleep = self.asleep is not None and self.asleep.epoch == (await self.gateway.mark(self.group)).epoch
        if self.here is None and not asleep:
            self.cluster = self.cluster | self.new_offsets()

    async def adopt(self) -> None:
        if self.here is None and not self.cluster:
            await self.adopt_unknown()
            return
        fails = self.here is None and self.fails()
        error, adopted, taken = await self.gateway.adopt(self.group, self.cluster)
        if error is NONE:
            assert adopted
            assert taken == (-1 if self.here is not None else len(self.cluster))
            if self.here is None:
                self.here = dict(self.cluster)
            return
        assert fails
        await self.gateway.led.loaded()
        if (await self.gateway.adopt(self.group, None))[1] and self.here is None:
            self.here = dict(self.cluster)

    async def adopt_unknown(self) -> None:
        """The group is nowhere; it begins, or not."""
        assert (await self.gateway.adopt_unknown(self.group)).confirmed_absent
        assert await self.gateway.fetch(self.group) == {}
        if self.rng.random() < 0.5:
            self.here = {}
            await self.commit()
        else:
            self.gateway.led.edge.clock.passed_ms += CONFIRMED_ABSENT_MS

    async def heard(self) -> tuple[int, int]:
        mark = await self.gateway.mark(self.group)
        return mark.epoch, mark.asked_ms

    async def fall_asleep(self) -> None:
        """Read the cluster, as an adopter; a client is there again only after others gave the group back."""
        epoch = (await self.gateway.mark(self.group)).epoch
        if self.here is None:
            self.asleep = ClusterReading(table(self.cluster), epoch, 0)

    async def wake(self) -> None:
        """Store what was read, after whatever has happened meanwhile."""
        if self.asleep is None:
            return
        offsets = {place.partition: each.offset for place, each in self.asleep.offsets.items()}
        is_stale = self.asleep.epoch != (await self.gateway.mark(self.group)).epoch
        error, _, _ = await self.gateway.adopt(self.group, offsets, epoch=self.asleep.epoch)
        if self.here is None and not is_stale:
            self.here = offsets
        assert error is (STALE if self.here is None else NONE)
        self.asleep = None

    async def expire(self) -> None:
        """All that was committed is as old as it can be."""
        if self.here is None:
            return
        clock, retention_ms = (
            self.gateway.led.edge.clock,
            self.gateway.led.manager.env.config.offsets_retention_ms,
        )
        self.here = self.cluster = {}
        for _ in range(2):
            clock.passed_ms += retention_ms
            await expire(self.gateway)
        if not (await self.gateway.mark(self.group)).adopted:
            self.here = None

    def fails(self) -> bool:
        """Let the next flush fail now and then, with or without having been written."""
        fails = self.rng.random() < 0.2
        if fails:
            self.gateway.led.log.fail(PARTITIONS[0], LOST, kept=self.rng.random() < 0.5)
        return fails

    async def commit(self) -> None:
        offsets = {index: offset for index, offset in self.new_offsets().items() if index < 4}
        error = await self.gateway.commit(self.group, offsets)
        assert error is (LOADING if self.here is None or self.is_closed else NONE)
        if error is NONE and self.here is not None:
            self.here |= offsets

    async def delete(self) -> None:
        error = await self.gateway.delete(self.group)
        if self.here is None:
            assert error is not NONE
        elif self.is_closed and self.here:
            assert error is LOADING
        else:
            assert error is (NONE if self.here else ErrorCode.GROUP_ID_NOT_FOUND)
            self.here = {}

    async def reload(self) -> None:
        self.epoch += 1
        await self.gateway.reload(self.epoch)
        self.opens_ms = 0

    async def give_back(self) -> None:
        if self.here is None:
            return
        if self.rng.random() < 0.3:  # something was committed since it was read
            assert await self.gateway.give_back(self.group, {**self.here, 9: 1 << 40}) is not NONE
            if self.is_closed:
                self.opens_ms = self.gateway.led.edge.clock.mono_ms() + CLOSED_MS
            return
        self.cluster = self.cluster | self.here
        if await self.gateway.give_back(self.group, self.here) is NONE:
            self.here, self.opens_ms = None, 0

    async def hang_up(self) -> None:
        """A gateway is gone in the middle of what it asks."""
        adoptions = self.gateway.adoptions
        if self.here is not None:
            self.cluster = self.cluster | self.here
            steps: Any = adoptions.remove_group_if_unchanged(
                ReplyDependencies(), self.group, table(self.here)
            )
        else:
            steps = adoptions.adopt(
                ReplyDependencies(),
                self.group,
                ClusterReading(table(self.cluster), *await self.heard()),
            )
        break_off(steps, after=self.rng.randrange(20))
        await settle()
        partition = partition_for(self.group, len(PARTITIONS))
        closed = self.gateway.led.manager.owned_partitions[partition].ledger.closed
        self.opens_ms = closed.get(self.group, 0)  # for longer, if it was asked at all, or not any more
        if self.rng.random() < 0.5:
            await self.reload()
        adopted = (await self.gateway.adopt(self.group, None))[1]
        if adopted and self.here is None:
            self.here = dict(self.cluster)
        elif not adopted:
            self.here = None

    async def check(self) -> None:
        await self.gateway.led.loaded()
        found = await self.gateway.fetch(self.group)
        assert found == (LOADING if self.here is None else self.here)


@pytest.mark.parametrize("seed", range(25))
async def test_in_any_order_no_older_offset_comes_back(gateway: Gateway, seed: int) -> None:
    story = Story(seed, gateway)
    for _ in range(60):
        await story.step()
