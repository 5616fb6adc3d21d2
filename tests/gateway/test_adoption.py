# SPDX-License-Identifier: Apache-2.0
"""Which groups pass a gateway: those that are ours, once they are; with a coordinator and a cluster that are played."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from coordinator.cluster_requests.model import ClusterGroupState, Offsets, TopicPartition, TransferredOffset
from coordinator.cluster_requests.retrying import RefusedByCluster, RetryLater
from coordinator.gateway.adoption import AT_A_TIME, REFUSED_MAX, REFUSED_MS, WAITED_MS, Adoption
from coordinator.gateway.routing_types import TakeoverRequester
from coordinator.migration.model import STALE, ClusterReading, Ownership
from coordinator.migration.protocol import ATTEMPTS_MAX
from coordinator.runtime.promise import run_until_next_wait
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.incidents import REMIND_MS
from coordinator.upstream.errors import Unreachable
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.support.idle import idle
from tests.support.log_lines import captured

NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
COMMITTED = {TopicPartition("t", 0): TransferredOffset(5)}
LIVE = ClusterGroupState("classic", "Stable", 1)


class Played:
    """The coordinator here and the cluster there, with what goes wrong next; questions are counted."""

    def __init__(self) -> None:
        self.here: dict[str, Offsets] = {}
        self.confirmed_absent: set[str] = set()
        self.unknown: set[str] = set()
        """Groups that the cluster knows nothing of."""
        self.epoch = 0
        self.given_back_meanwhile = 0
        """So many times another group goes back to the cluster while one is taken over."""
        self.read: Counter[str] = Counter()
        self.states: dict[str, ClusterGroupState] = {}
        self.error: Exception | None = None
        self.asked: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def find_ownership(self, group: GroupId) -> Ownership:
        self.asked[group] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.may_answer.wait()
        finally:
            self.at_once -= 1
        if self.error is not None:
            raise self.error
        return Ownership(NONE, group in self.here, group in self.confirmed_absent, self.epoch)

    async def adopt(self, group: GroupId, reading: ClusterReading) -> Ownership:
        if self.given_back_meanwhile:
            self.given_back_meanwhile -= 1
            self.epoch += 1
        if reading.epoch != self.epoch:
            return Ownership(STALE)
        if reading.is_unknown:
            self.confirmed_absent.add(group)
            return Ownership(is_confirmed_absent=True)
        self.here[group] = reading.offsets
        return Ownership(is_adopted=True, taken=len(reading.offsets))

    async def fetch_group_state(self, group: GroupId) -> ClusterGroupState:
        return self.states.get(group, ClusterGroupState.none())

    async def wait_for_open_transactions(self, group: GroupId) -> None:
        pass

    async def fetch_committed_offsets(self, group: GroupId) -> Offsets:
        self.read[group] += 1
        return {} if group in self.unknown else COMMITTED

    async def predict_commit_errors(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, int]:
        raise AssertionError("nothing is to be written to the cluster")

    async def commit(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, int]:
        raise AssertionError("nothing is written to the cluster")

    async def delete_offsets(
        self, group: GroupId, places: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        raise AssertionError("nothing is deleted there")


class Process:
    """A gateway's adoption, its clock, and what was answered."""

    def __init__(self, played: Played, *, take_live: bool = False) -> None:
        self.now_ms = 0
        self.tasks = Tasks()
        self.adoption = Adoption(played, played, self.tasks, lambda: self.now_ms, take_live=take_live)

    def begin(self, *groups: str) -> "list[Asking]":
        """Ask for each of these in a request of its own."""
        waiting = [Asking(self.adoption, group) for group in groups]
        for each in waiting:
            each.go_on()
        return waiting

    async def ask(self, group: str, api: ApiKey = ApiKey.JOIN_GROUP) -> Any:
        """True where the group is ours at once; else what is answered, None if nothing is by now."""
        session = Asking(self.adoption, group, api)
        session.go_on()
        if session.error is not None and not session.has_waited:
            return True if session.error is NONE else session.error
        await idle()
        return session.error


class Asking:
    """A session whose request waits until its group is ours."""

    def __init__(self, adoption: Adoption, group: str, api: ApiKey = ApiKey.JOIN_GROUP) -> None:
        self._asked = adoption.adopt(group, TakeoverRequester(api, self.go_on, "app", "127.0.0.1:7"))
        self.error: ErrorCode | None = None
        self.has_waited = False

    def go_on(self) -> None:
        """Look again."""
        if self.error is None:
            self.error = run_until_next_wait(self._asked)
            self.has_waited = self.has_waited or self.error is None

    def end(self) -> None:
        """The client is gone."""
        self._asked.close()


@pytest.fixture
async def played() -> Played:
    return Played()


async def test_a_group_is_taken_over_once_and_then_known(played: Played) -> None:
    process = Process(played)
    assert await process.ask("g") is NONE
    assert played.here == {"g": COMMITTED}
    assert await process.ask("g") is True
    assert played.asked["g"] == 1
    assert process.adoption.counts["adopted"] == 1
    other = Process(played)
    assert await other.ask("g") is NONE  # another process asks itself
    assert other.adoption.counts["already"] == 1
    assert played.asked["g"] == 2


async def test_a_group_that_was_given_back_is_asked_for_again(played: Played) -> None:
    process = Process(played)
    await process.ask("g")
    await process.ask("h")
    process.adoption.forget_given_back_groups(["g"])
    del played.here["g"]
    assert await process.ask("h") is True
    assert await process.ask("g") is NONE
    assert played.here["g"] == COMMITTED


async def test_a_group_that_is_nowhere_passes_and_is_asked_about_each_time(played: Played) -> None:
    process = Process(played)
    played.unknown.add("g")
    for _ in range(3):
        assert await process.ask("g") is NONE
    assert (played.asked["g"], played.read["g"]) == (3, 1), "the cluster is asked once"
    assert process.adoption.counts["vacant"] == 3
    assert played.here == {}
    played.confirmed_absent.clear()
    played.here["g"] = {}  # it has begun
    assert await process.ask("g") is NONE
    assert await process.ask("g") is True


async def test_what_was_read_is_read_again_where_groups_go_back_meanwhile(played: Played) -> None:
    process = Process(played)
    played.given_back_meanwhile = 2
    assert await process.ask("g") is NONE
    assert played.read["g"] == 3
    played.given_back_meanwhile = ATTEMPTS_MAX
    assert await process.ask("h") is LOADING
    assert "h" not in played.here
    assert process.adoption.counts["failed"] == 1


async def test_requests_for_a_group_wait_for_one_adoption(played: Played) -> None:
    process = Process(played)
    played.may_answer.clear()
    waiting = process.begin(*["g"] * 5)
    await idle()
    assert [each.error for each in waiting] == [None] * 5
    played.may_answer.set()
    await idle()
    assert [each.error for each in waiting] == [NONE] * 5
    assert played.asked["g"] == 1


async def test_a_live_group_is_refused_and_looked_at_again_after_a_moment(played: Played) -> None:
    process = Process(played)
    played.states["g"] = LIVE
    assert await process.ask("g") is LOADING
    assert process.adoption.counts["live"] == 1
    del played.states["g"]
    process.now_ms = REFUSED_MS - 1
    assert await process.ask("g") is LOADING
    assert played.asked["g"] == 1
    process.now_ms = REFUSED_MS
    assert await process.ask("g") is NONE


async def test_groups_and_members_that_are_waited_for_are_counted(played: Played) -> None:
    process = Process(played)
    played.states = {
        "g": ClusterGroupState("classic", "Stable", 3),
        "h": ClusterGroupState("share", "Empty", 0),
    }
    for group in ("g", "h", "free"):
        await process.ask(group)
    assert process.adoption.count_wanted_groups_left_at_cluster() == (2, 3)
    process.now_ms = REFUSED_MS
    played.states["g"] = ClusterGroupState("classic", "Stable", 1)
    await process.ask("g")
    assert process.adoption.count_wanted_groups_left_at_cluster() == (2, 1)
    process.now_ms += WAITED_MS
    assert process.adoption.count_wanted_groups_left_at_cluster() == (0, 0), "nobody has asked for so long"
    await process.ask("g")
    del played.states["g"]
    process.now_ms += REFUSED_MS
    await process.ask("g")
    assert process.adoption.count_wanted_groups_left_at_cluster() == (0, 0), "it is here"


async def test_of_very_many_refusals_only_the_oldest_are_forgotten(played: Played) -> None:
    process = Process(played)
    groups = [f"g{number}" for number in range(REFUSED_MAX + 1)]
    played.states = dict.fromkeys(groups, LIVE)
    for group in groups:
        assert await process.ask(group) is LOADING
    assert await process.ask(groups[1]) is LOADING
    assert played.asked[groups[1]] == 1
    assert await process.ask(groups[0]) is LOADING
    assert played.asked[groups[0]] == 2


async def test_a_group_that_cannot_be_taken_over_has_a_line_each_minute_and_one_at_the_end(
    played: Played,
) -> None:
    with captured() as lines:
        process = Process(played)
        played.states["g"] = LIVE
        for _ in range(REMIND_MS // REFUSED_MS + 1):
            assert await process.ask("g") is LOADING
            process.now_ms += REFUSED_MS
        del played.states["g"]
        assert await process.ask("g") is NONE
    live = "a group has members at the cluster, and stays there until they are gone"
    assert lines.lines == [
        ("warning", live, {"group": "g", "kind": "classic", "members": 1}),
        ("warning", live, {"group": "g", "kind": "classic", "members": 1, "seconds": 60, "times": 121}),
        ("info", "a group can be served again", {"group": "g", "seconds": 60, "times": 121}),
        (
            "info",
            "a group was taken over",
            {"group": "g", "offsets": 1, "client_id": "app", "peer": "127.0.0.1:7"},
        ),
    ]


async def test_a_live_group_is_taken_where_that_is_wanted(played: Played) -> None:
    played.states["g"] = LIVE
    assert await Process(played, take_live=True).ask("g") is NONE
    assert played.here == {"g": COMMITTED}


INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("state", "join", "commit"),
    [
        (ClusterGroupState("classic", "Stable", 1), LOADING, ErrorCode.UNKNOWN_MEMBER_ID),
        (ClusterGroupState("classic", "PreparingRebalance", 0), LOADING, ErrorCode.UNKNOWN_MEMBER_ID),
        (ClusterGroupState("consumer", "Assigning", 2), LOADING, ErrorCode.UNKNOWN_MEMBER_ID),
        (ClusterGroupState("streams", "NotReady", 1), INCONSISTENT, ErrorCode.UNKNOWN_MEMBER_ID),
        (ClusterGroupState("share", "Stable", 1), INCONSISTENT, ErrorCode.GROUP_ID_NOT_FOUND),
        (ClusterGroupState("share", "Empty", 0), INCONSISTENT, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
async def test_requests_for_a_group_that_stays_at_the_cluster_get_a_brokers_error(
    played: Played, state: ClusterGroupState, join: ErrorCode, commit: ErrorCode
) -> None:
    process = Process(played)
    played.states["g"] = state
    wanted = {ApiKey.JOIN_GROUP: join, ApiKey.OFFSET_COMMIT: commit}
    first = {}
    for api in wanted:
        process.now_ms += REFUSED_MS  # each looks for itself
        first[api] = await process.ask("g", api=api)
    assert first == wanted
    asked = played.asked["g"]
    assert {api: await process.ask("g", api=api) for api in wanted} == wanted, "what is remembered, too"
    assert played.asked["g"] == asked
    assert played.here == {}
    assert process.adoption.counts["live"] == len(wanted)


@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
async def test_an_empty_group_that_a_broker_would_make_classic_is_taken_over(
    played: Played, kind: str
) -> None:
    played.states["g"] = ClusterGroupState(kind, "Empty", 0)
    assert await Process(played).ask("g") is NONE
    assert played.here == {"g": COMMITTED}


async def test_the_log_names_a_share_group_that_stays(played: Played) -> None:
    played.states["g"] = ClusterGroupState("share", "Empty", 0)
    with captured() as lines:
        await Process(played).ask("g")
    said = "a share group of this id is at the cluster, and stays there"
    assert lines.lines == [("warning", said, {"group": "g", "kind": "share", "members": 0})]


@pytest.mark.parametrize("kind", ["streams", "share"])
async def test_a_group_of_any_kind_is_taken_where_that_is_wanted(played: Played, kind: str) -> None:
    played.states["g"] = ClusterGroupState(kind, "Stable", 1)
    assert await Process(played, take_live=True).ask("g") is NONE
    assert played.here == {"g": COMMITTED}


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (Unreachable("kafka:9092", "gone"), LOADING),
        (RetryLater("asking", ErrorCode.NOT_COORDINATOR), ErrorCode.NOT_COORDINATOR),
        (RetryLater("asking", LOADING), LOADING),
        (ConnectionResetError(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (TimeoutError(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (
            RefusedByCluster("asking", ErrorCode.INVALID_GROUP_ID, None),
            NONE,
        ),  # the coordinator itself says so
    ],
    ids=str,
)
async def test_what_goes_wrong_is_an_error_on_which_clients_try_again(
    played: Played, error: Exception, answer: ErrorCode
) -> None:
    process = Process(played)
    played.error = error
    assert await process.ask("g") is answer
    assert await process.ask("g", api=ApiKey.OFFSET_COMMIT) is (True if answer is NONE else answer)
    played.error = None
    process.now_ms = REFUSED_MS
    assert await process.ask("g") in (NONE, True)


async def test_only_so_many_are_taken_over_at_a_time(played: Played) -> None:
    process = Process(played)
    played.may_answer.clear()
    waiting = process.begin(*(f"g{number}" for number in range(3 * AT_A_TIME)))
    await idle()
    assert played.at_once == AT_A_TIME
    played.may_answer.set()
    await idle()
    assert [each.error for each in waiting] == [NONE] * 3 * AT_A_TIME
    assert played.most_at_once == AT_A_TIME


async def test_an_adoption_that_others_share_goes_on_without_one_who_is_gone(played: Played) -> None:
    process = Process(played)
    played.may_answer.clear()
    waiting = process.begin("g", "g", "g")
    await idle()
    waiting[0].end()
    played.may_answer.set()
    await idle()
    assert [each.error for each in waiting] == [None, NONE, NONE]
    assert played.asked["g"] == 1


async def test_an_adoption_that_is_called_off_leaves_nobody_waiting(played: Played) -> None:
    process = Process(played)
    played.may_answer.clear()
    (waiting,) = process.begin("g")
    await idle()
    process.tasks.cancel()
    await idle()
    assert waiting.error is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_group_that_is_given_back_while_it_is_asked_about_is_asked_about_again(
    played: Played,
) -> None:
    process = Process(played)
    played.here["g"] = {}
    played.may_answer.clear()
    assert await process.ask("g") is None
    process.adoption.forget_given_back_groups(["g"])
    played.may_answer.set()
    await idle()
    del played.here["g"]
    assert await process.ask("g") is NONE
    assert played.here["g"] == COMMITTED
