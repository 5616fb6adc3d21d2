# SPDX-License-Identifier: Apache-2.0
"""Groups that are taken over from a cluster and given back: no order of things brings an older offset back."""

import random
from collections.abc import AsyncIterator, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.api import private
from coordinator.api.private import adopt_group, give_back_group
from coordinator.api.table import Capabilities, declared
from coordinator.partitions.adoption import AT_ONCE, Adoptions, Offset
from coordinator.partitions.book import book_of, is_book
from coordinator.tickets import Waiting
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, encode_request_header
from protocol.messages import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from protocol.names import BOOK_PREFIX, GroupId, LeaderEpoch, Partition
from protocol.placement import partition_for
from storage.format.batch import iter_records
from storage.format.records import OffsetCommitRecord, decode_record
from tests.net import requests
from tests.net.edge import Client, settle
from tests.partitions.running import Refused, commit_error, fetched
from tests.partitions.test_any_log import LOST, PARTITIONS, Led, answer

NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
CAPABILITIES = Capabilities([*declared(), *declared(private)])
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
        self, group: str, offsets: Offsets | None, metadata: str = ""
    ) -> tuple[ErrorCode, bool, int]:
        """(error, whether it is taken over, how many offsets were taken)."""
        frame = await self.ask(adopt_frame(group, offsets, metadata))
        body = adopt_group.API.schema.codecs[0].decode_response(frame, 5)
        return ErrorCode(body.error_code), body.adopted, body.taken

    async def give_back(self, group: str, offsets: Offsets, metadata: str = "") -> ErrorCode:
        frame = await self.ask(give_back_frame(group, offsets, metadata))
        return ErrorCode(give_back_group.API.schema.codecs[0].decode_response(frame, 5).error_code)

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


def table(offsets: Offsets) -> list[Offset]:
    return [Offset(requests.TOPIC, index, offset, -1, "") for index, offset in offsets.items()]


def break_off(steps: Generator[None, None, object], after: int) -> None:
    """Take so many steps, and no more: the gateway that has asked for them is gone."""
    for _ in range(after):
        if next(steps, steps) is steps:
            return
    steps.close()


def frame_of(api: Any, values: dict[str, Any]) -> bytes:
    header = encode_request_header(RequestHeader(api.key, 0, 1, "gateway"), flexible=True)
    request: Any = api.schema.request
    return requests.framed(header + api.schema.codecs[0].encode_request(request(version=0, **values)))


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


def adopt_frame(group: str, offsets: Offsets | None, metadata: str = "") -> bytes:
    kind = adopt_group.AdoptGroupRequest.AdoptedTopic
    topics = None if offsets is None else topics_of(kind, "AdoptedPartition", offsets, metadata)
    return frame_of(adopt_group.API, {"group_id": group, "offsets": topics})


def give_back_frame(group: str, offsets: Offsets, metadata: str = "") -> bytes:
    kind = give_back_group.GiveBackGroupRequest.GivenTopic
    topics = topics_of(kind, "GivenPartition", offsets, metadata)
    return frame_of(give_back_group.API, {"group_id": group, "offsets": topics})


@pytest.fixture
async def led(tmp_path: Path) -> AsyncIterator[Led]:
    led = Led(tmp_path, capabilities=CAPABILITIES, request_bytes_max=1 << 22)
    led.manager.needs_marks = True
    await led.lead()
    yield led
    await led.leadership.close()


@pytest.fixture
async def gateway(led: Led) -> Gateway:
    return Gateway(led)


@pytest.fixture
def group(led: Led) -> str:
    return led.groups[1]


async def test_a_group_is_taken_over_once(gateway: Gateway, group: str) -> None:
    assert await gateway.adopt(group, None) == (NONE, False, 0)
    assert await gateway.adopt(group, {0: 5, 3: 7}) == (NONE, True, 2)
    assert await gateway.fetch(group) == {0: 5, 3: 7}
    assert await gateway.commit(group, {0: 6}) is NONE
    assert await gateway.adopt(group, {0: 5, 4: 9}) == (NONE, True, 0)
    assert await gateway.adopt(group, None) == (NONE, True, 0)
    assert await gateway.fetch(group) == {0: 6, 3: 7}


async def test_a_group_that_may_be_at_the_cluster_is_not_spoken_of(gateway: Gateway, group: str) -> None:
    assert await gateway.fetch(group) is LOADING
    assert await gateway.commit(group, {0: 1}) is LOADING
    frame = await gateway.ask(requests.join(group, version=3))
    assert requests.answer(ApiKey.JOIN_GROUP, 3, frame).error_code == LOADING
    assert await gateway.adopt(group, {}) == (NONE, True, 0)
    assert await gateway.fetch(group) == {}
    assert await gateway.commit(group, {0: 1}) is NONE


@pytest.mark.parametrize("epochs", [0, 1, 2])
async def test_a_group_that_was_deleted_is_not_taken_over_again(
    gateway: Gateway, group: str, epochs: int
) -> None:
    await gateway.adopt(group, {0: 5})
    assert await gateway.delete(group) is NONE
    for epoch in range(1, epochs + 1):
        await gateway.reload(epoch)
    assert await gateway.adopt(group, {0: 5}) == (NONE, True, 0)
    assert await gateway.fetch(group) == {}


async def test_a_group_that_has_offsets_here_keeps_them(gateway: Gateway, group: str) -> None:
    gateway.led.manager.needs_marks = False
    assert await gateway.commit(group, {0: 9}) is NONE
    gateway.led.manager.needs_marks = True
    assert await gateway.fetch(group) == {0: 9}
    assert await gateway.adopt(group, {0: 5, 1: 5}) == (NONE, True, 0)
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
    assert await gateway.adopt(group, None) == (NONE, False, 0)
    assert gateway.led.manager.env.usage.offsets == 0


async def test_a_part_of_an_adoption_is_of_no_group_and_is_cleared_away(gateway: Gateway, group: str) -> None:
    break_off(gateway.adoptions.adopt(Waiting(), GroupId(group), table(MANY)), after=3)
    gateway.led.manager.needs_marks = False  # even where none is needed
    for epoch in (1, 2):
        assert await gateway.fetch(group) is LOADING
        assert await gateway.commit(group, {0: 1}) is LOADING
        assert group not in await gateway.list()
        assert await gateway.adopt(group, None) == (NONE, False, 0)
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
    assert await gateway.adopt(group, None) == (NONE, True, 0)


async def test_no_client_sees_or_touches_a_book(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    book = book_of(Partition(1), len(PARTITIONS))
    for needs_marks in (True, False):
        gateway.led.manager.needs_marks = needs_marks
        assert await gateway.list() == {group}
        assert await gateway.fetch(book) == {}
        assert await gateway.commit(book, {0: 5}) is ErrorCode.INVALID_GROUP_ID
        assert await gateway.delete(book) is ErrorCode.GROUP_ID_NOT_FOUND
        frame = await gateway.ask(
            requests.request(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=[book]))
        )
        (described,) = requests.answer(ApiKey.DESCRIBE_GROUPS, 0, frame).groups
        assert (described.group_state, described.members) == ("Dead", [])
        assert (await gateway.adopt(book, {0: 1}))[0] is ErrorCode.INVALID_GROUP_ID
        assert await gateway.give_back(book, {}) is ErrorCode.INVALID_GROUP_ID
    assert await gateway.adopt(group, None) == (NONE, True, 0)


async def test_the_mark_is_a_record_that_kafkas_tools_read(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    (batch,) = gateway.led.topic.batches[Partition(1)]
    records = [decode_record(key, value) for _, _, key, value in iter_records(batch)]
    found = [
        (record.group, record.topic, record.partition, record.value.offset)
        for record in records
        if isinstance(record, OffsetCommitRecord) and record.value is not None
    ]
    book = book_of(Partition(1), len(PARTITIONS))
    assert sorted(found) == [(book, group, 0, 0), (group, requests.TOPIC, 0, 5)]


async def test_expiry_and_deleted_topics_leave_the_book_alone(gateway: Gateway, group: str) -> None:
    await gateway.adopt(group, {0: 5})
    manager = gateway.led.manager
    for _ in manager.delete_offsets_of_topics(frozenset({group, requests.TOPIC})):
        pass
    for kept in list(manager.current_groups()):
        manager.cleanup_group(kept, 1 << 60)
    await gateway.reload(1)
    assert await gateway.adopt(group, {0: 5}) == (NONE, True, 0)
    assert await gateway.fetch(group) == {}


async def test_there_is_room_for_so_many_marks_and_offsets(tmp_path: Path) -> None:
    led = Led(tmp_path, capabilities=CAPABILITIES)
    led.manager.needs_marks = True
    await led.lead()
    usage = led.manager.env.usage
    gateway = Gateway(led)
    usage.offsets += led.manager.env.config.limits.max_offsets - 3
    assert (await gateway.adopt(led.groups[0], {0: 1, 1: 1, 2: 1}))[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await gateway.adopt(led.groups[0], {0: 1, 1: 1}) == (NONE, True, 2)
    await led.leadership.close()


@pytest.mark.parametrize("offsets", [{0: -1}, {-1: 1}])
async def test_what_is_no_offset_is_refused(gateway: Gateway, group: str, offsets: Offsets) -> None:
    assert (await gateway.adopt(group, offsets))[0] is ErrorCode.INVALID_REQUEST
    assert await gateway.give_back(group, offsets) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_each_partition_has_a_book_that_belongs_to_it(partitions: int) -> None:
    books = [book_of(Partition(partition), partitions) for partition in reversed(range(partitions))]
    assert [partition_for(book, partitions) for book in books] == list(reversed(range(partitions)))
    assert all(map(is_book, books))
    assert book_of(Partition(0), 1) == f"{BOOK_PREFIX}0"


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
        ]
        await self.rng.choice([*happens, self.hang_up, self.commit])()
        await self.check()

    async def work_at_the_cluster(self) -> None:
        if self.here is None:
            self.cluster |= self.new_offsets()

    async def adopt(self) -> None:
        fails = self.here is None and self.fails()
        error, adopted, taken = await self.gateway.adopt(self.group, self.cluster)
        if error is NONE:
            assert adopted
            assert taken == (0 if self.here is not None else len(self.cluster))
            if self.here is None:
                self.here = dict(self.cluster)
            return
        assert fails
        await self.gateway.led.loaded()
        if (await self.gateway.adopt(self.group, None))[1] and self.here is None:
            self.here = dict(self.cluster)

    def fails(self) -> bool:
        """Let the next flush fail now and then, with or without having been written."""
        fails = self.rng.random() < 0.2
        if fails:
            self.gateway.led.log.fail(PARTITIONS[0], LOST, kept=self.rng.random() < 0.5)
        return fails

    async def commit(self) -> None:
        offsets = {index: offset for index, offset in self.new_offsets().items() if index < 4}
        error = await self.gateway.commit(self.group, offsets)
        assert error is (LOADING if self.here is None else NONE)
        if self.here is not None:
            self.here |= offsets

    async def delete(self) -> None:
        error = await self.gateway.delete(self.group)
        if self.here is None:
            assert error is not NONE
        else:
            assert error is (NONE if self.here else ErrorCode.GROUP_ID_NOT_FOUND)
            self.here = {}

    async def reload(self) -> None:
        self.epoch += 1
        await self.gateway.reload(self.epoch)

    async def give_back(self) -> None:
        if self.here is None:
            return
        if self.rng.random() < 0.3:  # something was committed since it was read
            assert await self.gateway.give_back(self.group, {**self.here, 9: 1 << 40}) is not NONE
            return
        self.cluster |= self.here
        if await self.gateway.give_back(self.group, self.here) is NONE:
            self.here = None

    async def hang_up(self) -> None:
        """A gateway is gone in the middle of what it asks."""
        adoptions = self.gateway.adoptions
        if self.here is not None:
            self.cluster |= self.here
            steps: Any = adoptions.give_back(Waiting(), self.group, table(self.here))
        else:
            steps = adoptions.adopt(Waiting(), self.group, table(self.cluster))
        break_off(steps, after=self.rng.randrange(20))
        await settle()
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
