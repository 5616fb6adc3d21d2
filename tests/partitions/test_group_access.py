# SPDX-License-Identifier: Apache-2.0
"""The one way to a group: no api bypasses it, and no reply leaves before what it depends on is durable."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator import api
from coordinator.api.context import RequestContext
from coordinator.api.table import Capabilities
from coordinator.groups.classic.state import GroupState
from coordinator.partitions.group_access import AbsentGroup, GroupAccess, RequestRefused
from coordinator.tickets import DURABLE, ReplyDependencies
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.newtypes import GroupId, Partition
from tests.groups.harness import Cluster
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.net.requests import EVERY_REQUEST, TOPIC, Request
from tests.support.apis import APIS
from tests.support.groups import classic

GROUP: Final = "ab"
"""What sample requests call a group."""

ABOUT_GROUPS: Final = {
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_OFFSETS,
}
"""What is answered with the state of a group."""

NOT_ABOUT_GROUPS: Final = {
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}

ABOUT_A_GROUP: Final = [each for each in EVERY_REQUEST if each.api in ABOUT_GROUPS]

AROUND_GROUP_ACCESS: Final = {
    "_manager",
    "absence_flush",
    "absence_ticket",
    "current_groups",
    "flush",
    "find",
    "manager",
    "owned_partitions",
    "shard",
    "find_shard_or_error",
    "ticket",
    "add_ticket",
}
"""Attributes by which a handler would get at a group, or at what its reply waits for, by itself."""


def test_every_api_is_either_about_groups_or_not() -> None:
    served = {each.api for each in EVERY_REQUEST}
    assert served == ABOUT_GROUPS | NOT_ABOUT_GROUPS
    assert not ABOUT_GROUPS & NOT_ABOUT_GROUPS


# --- the rule ---


def ways_round(source: str) -> list[str]:
    """Where a module of an api gets at shards, or at what replies wait for, without GroupAccess."""
    return [
        f"line {node.lineno}: {node.attr}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in AROUND_GROUP_ACCESS
    ]


def test_no_api_bypasses_group_access() -> None:
    root = Path(api.__path__[0])
    modules = sorted(root.rglob("*.py"))
    assert len(modules) > 20
    found = {str(module.relative_to(root)): ways_round(module.read_text()) for module in modules}
    assert "private/adopt_group.py" in found
    # This one gives the replies of outcomes to their requests, with the ticket that the manager says.
    assert len(found.pop("context.py")) == 1
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "shard = node.group_access._manager.shard_for(request.group_id)",
        "group = node.manager.find(request.group_id)",
        "ctx.flush = group.flush",
        "ctx.add_ticket(0)",
        "groups = shard.groups; known = shard.absence_flush",
        "for shard in node.group_access.partitions.owned_partitions.values(): pass",
    ],
)
def test_a_handler_that_bypasses_group_access_is_found(line: str) -> None:
    handler = f"def handle(node, request, ctx):\n    {line}\n"
    assert ways_round(handler) != []


# --- the behaviour ---


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    """Where nothing is durable before the test says so."""
    return Edge(tmp_path, flush_by_itself=False, end_group=GROUP)


def ask(request: Request) -> bytes:
    """A sample request that makes its handler look at the group."""
    values = requests.sample_values(*request)
    if request.api is ApiKey.JOIN_GROUP:
        values["session_timeout_ms"] = 10_000
    elif request.api is ApiKey.LIST_GROUPS:
        values = {name: [] for name in values}  # no filters
    elif request.api is ApiKey.LIST_OFFSETS:
        values["topics"][0]["name"] = TOPIC
    return requests.build(*request, values)


def with_commit(edge: Edge) -> None:
    """The group exists by a commit that is not durable."""
    edge.connect().send(requests.commit(GROUP, {0: 5}))


def with_deletion(edge: Edge) -> None:
    """The group is gone by a deletion that is not durable."""
    with_commit(edge)
    edge.flush()
    edge.connect().send(
        requests.build(ApiKey.DELETE_GROUPS, 0, {"groups_names": [GROUP]}),
    )
    assert classic(edge.manager, GROUP) is None


def made_anew(edge: Edge) -> None:
    """The group is there again, after a deletion that is not durable."""
    with_deletion(edge)
    edge.connect().send(requests.join(GROUP, version=3))
    assert classic(edge.manager, GROUP) is not None


def with_generation(edge: Edge) -> None:
    """The group is Stable by a sync that is not durable."""
    client = edge.connect()
    client.send(requests.join(GROUP, version=3))
    (joined,) = client.answers()
    member_id = requests.answer(ApiKey.JOIN_GROUP, 3, joined).member_id
    client.send(requests.sync(GROUP, member_id, 1, assignments={member_id: b"a"}))
    group = classic(edge.manager, GROUP)
    assert group is not None
    assert group.state is GroupState.STABLE


CHANGES: Final = {
    "a commit": with_commit,
    "a deletion": with_deletion,
    "made anew": made_anew,
    "a sync": with_generation,
}


async def answered_early(edge: Edge, request: Request) -> bool:
    """Ask about the group; whether the reply leaves before the change is durable. Afterwards it must come."""
    client = edge.connect()
    client.send(ask(request))
    await settle()
    early = bool(client.answers())
    for _ in range(3):  # a change that the request itself made has a flush of its own
        edge.flush()
        await settle()
    assert early or client.answers(), f"{request} is never answered"
    return early


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("request_", ABOUT_A_GROUP, ids=str)
async def test_no_reply_leaves_before_the_flush_that_it_depends_on(
    edge: Edge, request_: Request, change: str
) -> None:
    CHANGES[change](edge)
    assert not await answered_early(edge, request_)


async def test_a_handler_that_waits_for_nothing_is_found(tmp_path: Path) -> None:
    def handle(_node: Any, request: HeartbeatRequest, _ctx: RequestContext) -> HeartbeatResponse:
        group = classic(planted.manager, request.group_id)
        error = ErrorCode.UNKNOWN_MEMBER_ID if group else ErrorCode.INVALID_GROUP_ID
        return HeartbeatResponse(error_code=error)

    apis = [replace(api, handle=handle) if api.key is ApiKey.HEARTBEAT else api for api in APIS.values()]
    planted = Edge(tmp_path, flush_by_itself=False, capabilities=Capabilities(apis))
    with_commit(planted)
    assert await answered_early(planted, Request(ApiKey.HEARTBEAT, 4))


# --- what GroupAccess gives ---


def numbers(waiting: ReplyDependencies) -> set[int]:
    """Which appends must be durable first."""
    return {ticket.number for ticket in (waiting.ticket, *(waiting.more or ())) if ticket is not DURABLE}


def entered(cluster: Cluster, group_id: str = "g") -> tuple[Any, set[int]]:
    """What GroupAccess finds, and what one has to wait for then."""
    waiting = ReplyDependencies()
    return cluster.group_access.look_up_group(waiting, GroupId(group_id)), numbers(waiting)


def test_group_access_gives_the_group_and_notes_its_newest_change() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.commit(1, group="other")
    assert entered(cluster) == (cluster.kept(), {1})


def test_group_access_gives_the_absence_of_a_group_and_notes_the_newest_removal() -> None:
    cluster = Cluster()
    found, tickets = entered(cluster)
    assert isinstance(found, AbsentGroup)
    assert (found.group_id, tickets) == ("g", set())
    cluster.commit(1)
    cluster.manager.delete_group(GroupId("g"))
    found, tickets = entered(cluster)
    assert isinstance(found, AbsentGroup)
    assert tickets == {len(cluster.log.tickets)}


def test_group_access_is_refused_while_the_partition_loads_and_where_it_is_not_led() -> None:
    cluster = Cluster()
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert entered(cluster) == (ErrorCode.NOT_COORDINATOR, set())
    assert not cluster.group_access.leads(GroupId("g"))
    cluster.manager.begin_load(Partition(0))
    assert entered(cluster) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, set())
    assert cluster.group_access.leads(GroupId("g"))
    assert not cluster.group_access.serves(GroupId("g"))


def test_between_slices_group_access_notes_what_has_changed_and_refuses_what_was_lost() -> None:
    cluster = Cluster()
    cluster.commit(1)
    kept, waiting = cluster.kept(), ReplyDependencies()
    cluster.group_access.recheck_and_add_dependency(waiting, kept)
    assert numbers(waiting) == {1}
    cluster.commit(2)
    cluster.group_access.recheck_and_add_dependency(waiting, kept)
    assert numbers(waiting) == {1, 2}
    cluster.manager.remove_groups_for_partition(Partition(0))
    cluster.log.replay(cluster.manager.begin_load(Partition(0)))
    with pytest.raises(RequestRefused) as refused:
        cluster.group_access.recheck_and_add_dependency(waiting, kept)
    assert refused.value.code is ErrorCode.NOT_COORDINATOR


def test_a_list_of_all_groups_waits_for_all_of_them_and_for_those_that_are_gone() -> None:
    cluster = Cluster()
    for number in range(3):
        cluster.commit(1, group=f"g{number}")
    cluster.manager.delete_group(GroupId("g2"))
    waiting = ReplyDependencies()
    assert [group.group_id for group in _shown(cluster.group_access, waiting)] == ["g0", "g1"]
    assert numbers(waiting) == {1, 2, len(cluster.log.tickets)}


def test_a_list_that_would_miss_the_groups_of_a_lost_partition_is_refused() -> None:
    cluster = Cluster()
    cluster.commit(1)
    listed = cluster.group_access.iterate_groups(ReplyDependencies())
    assert next(listed) is cluster.kept()
    cluster.manager.remove_groups_for_partition(Partition(0))
    with pytest.raises(RequestRefused) as refused:
        list(listed)
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def _shown(group_access: GroupAccess, waiting: ReplyDependencies) -> Iterator[Any]:
    return (group for group in group_access.iterate_groups(waiting) if group is not None)
