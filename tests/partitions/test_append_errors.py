# SPDX-License-Identifier: Apache-2.0
"""What clients hear of an append that failed (FORMATS.md), and of records that fit in no batch."""

from pathlib import Path

import pytest

from coordinator.groups.classic.state import GroupState
from coordinator.partitions.append_errors import get_client_error_code, get_unmapped_append_error_code
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import Partition
from storage.errors import CorruptLog, LogNotWritable, RecordTooLarge, StorageError, StorageFull
from tests.net import requests
from tests.partitions.running import Client, Running, eventually, node
from tests.partitions.running import commit_error as error_of
from tests.support.file_logs import get_files
from tests.support.groups import classic

E = ErrorCode
AWAY = {
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.NOT_ENOUGH_REPLICAS,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    E.REQUEST_TIMED_OUT,
}
ELSEWHERE = {E.NOT_LEADER_OR_FOLLOWER, E.KAFKA_STORAGE_ERROR}
TOO_LARGE = {E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE, E.INVALID_FETCH_SIZE}


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_the_table_of_failed_appends(code: ErrorCode) -> None:
    if code in AWAY:
        expected = E.COORDINATOR_NOT_AVAILABLE
    elif code in ELSEWHERE:
        expected = E.NOT_COORDINATOR
    elif code in TOO_LARGE:
        expected = E.UNKNOWN_SERVER_ERROR
    else:
        expected = code
    assert get_client_error_code(code) is expected


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RecordTooLarge("x"), E.MESSAGE_TOO_LARGE),
        (StorageError("x", "broken"), E.KAFKA_STORAGE_ERROR),
        (StorageFull("x", "full"), E.KAFKA_STORAGE_ERROR),
        (LogNotWritable("x", "failed before"), E.KAFKA_STORAGE_ERROR),
        (CorruptLog("x", "damaged"), E.KAFKA_STORAGE_ERROR),
        (ValueError("a bug"), E.UNKNOWN_SERVER_ERROR),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions_of_the_log_have_codes(error: Exception, code: ErrorCode) -> None:
    assert get_unmapped_append_error_code(error) is code


# --- records that fit in no batch ---

BATCH_BYTES_MAX = 2_048
TOO_LONG = "x" * 3_000


def in_log(running: Running) -> list[int]:
    return [get_files(running.app).end_offset(Partition(partition)) for partition in range(4)]


async def test_a_commit_that_fits_in_no_batch_is_refused_whole(tmp_path: Path) -> None:
    async with node(tmp_path / "data", message_max_bytes=BATCH_BYTES_MAX) as running:
        client = await running.client()
        assert await client.commit("g", 0, 1) is E.NONE
        before = in_log(running)
        frame = requests.commit("g", {0: 2, 1: 2}, metadata=TOO_LONG)
        assert error_of(await client.ask(frame)) is E.UNKNOWN_SERVER_ERROR
        # Several records that fit each by itself, but not together: a commit is atomic.
        frame = requests.commit("g", dict.fromkeys(range(90), 2), metadata="x" * 100)
        assert error_of(await client.ask(frame)) is E.UNKNOWN_SERVER_ERROR
        assert await client.fetch("g") == {0: 1}
        assert in_log(running) == before
        assert running.app.stats.offset_commits == 1
        assert await client.commit("g", 0, 3) is E.NONE
        assert await client.fetch("g") == {0: 3}


async def test_a_refused_first_commit_leaves_no_group_behind(tmp_path: Path) -> None:
    async with node(tmp_path / "data", message_max_bytes=BATCH_BYTES_MAX) as running:
        client = await running.client()
        frame = requests.commit("new", {0: 2}, metadata=TOO_LONG)
        assert error_of(await client.ask(frame)) is E.UNKNOWN_SERVER_ERROR
        assert classic(running.app.manager, "new") is None
        assert list(running.app.manager.current_groups()) == []


async def test_a_commit_with_others_in_its_flush_does_not_spoil_theirs(tmp_path: Path) -> None:
    async with node(tmp_path / "data", message_max_bytes=BATCH_BYTES_MAX) as running:
        client = await running.client()
        client.send(
            requests.commit("g", {0: 1}, 1),
            requests.commit("g", {1: 1}, 2, metadata=TOO_LONG),
            requests.commit("g", {2: 1}, 3),
        )
        errors = [error_of(await client.receive()) for _ in range(3)]
        assert errors == [E.NONE, E.UNKNOWN_SERVER_ERROR, E.NONE]
        assert await client.fetch("g") == {0: 1, 2: 1}


async def sync_with(client: Client, member_id: str, generation: int, part: bytes) -> hot.SyncGroupResponse:
    frame = await client.ask(requests.sync("g", member_id, generation, assignments={member_id: part}))
    answer = requests.answer(ApiKey.SYNC_GROUP, 4, frame)
    assert isinstance(answer, hot.SyncGroupResponse)
    return answer


async def test_an_assignment_that_fits_in_no_batch_makes_the_group_start_over(tmp_path: Path) -> None:
    async with node(tmp_path / "data", message_max_bytes=BATCH_BYTES_MAX) as running:
        client, other = await running.client(), await running.client()
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, await client.ask(requests.join("g", version=3)))
        before = in_log(running)

        refused = await sync_with(client, joined.member_id, 1, bytes(3_000))

        assert (refused.error_code, refused.assignment) == (E.UNKNOWN_SERVER_ERROR, b"")
        group = classic(running.app.manager, "g")
        assert group is not None
        assert group.state is GroupState.PREPARING_REBALANCE
        assert [member.assignment for member in group.members.values()] == [b""]
        assert in_log(running) == before
        assert await other.heartbeat("g", joined.member_id, 1) is E.REBALANCE_IN_PROGRESS

        # The member rejoins, and this time brings less.
        again = requests.answer(
            ApiKey.JOIN_GROUP, 3, await client.ask(requests.join("g", joined.member_id, version=3))
        )
        assert (again.error_code, again.generation_id) == (E.NONE, 2)
        assert (await sync_with(client, joined.member_id, 2, b"little")).assignment == b"little"
        assert await client.heartbeat("g", joined.member_id, 2) is E.NONE
    async with node(tmp_path / "data") as running:
        group = classic(running.app.manager, "g")
        assert group is not None
        assert (group.generation_id, [m.assignment for m in group.members.values()]) == (2, [b"little"])


async def test_a_subscription_that_fits_in_no_batch_is_refused_at_the_sync(tmp_path: Path) -> None:
    async with node(tmp_path / "data", message_max_bytes=BATCH_BYTES_MAX) as running:
        client = await running.client()
        frame = await client.ask(requests.join("g", version=3, metadata=bytes(3_000)))
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, frame)
        assert joined.error_code == E.NONE
        refused = await sync_with(client, joined.member_id, 1, b"part")
        assert refused.error_code == E.UNKNOWN_SERVER_ERROR
        await eventually(lambda: running.app.log.groups.is_idle, "the log to be idle")
        assert in_log(running) == [0] * 4
