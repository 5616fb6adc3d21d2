# SPDX-License-Identifier: Apache-2.0
"""The status of a whole data directory: its nodes, the cluster behind a gateway, and what is wrong. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from coordinator.overview.group_list import UnservedPart, name_node

PROBLEMS_MAX: Final = 20
"""The most problems that are listed of one node."""


class StatusQuery(msgspec.Struct, frozen=True, tag=True):
    """Asks a node for its status."""


class NodeStatus(msgspec.Struct, frozen=True):
    """One node: `partitions` counts those that it serves; disk space is in bytes, None if it is not known.

    `journal_bytes` are those of the log's journals. `last_flush_ms` is when the last successful flush to disk
    began, in Unix milliseconds; None if there was none since the start.
    `gateways` and `upstream` are those of /ready: None if there is no cluster.
    """

    node: int
    version: str
    cluster_id: str
    ready: bool
    complete: bool
    groups: int
    partitions: int
    loading: int
    disk_free: int | None
    disk_size: int | None
    journal_bytes: int
    last_flush_ms: int | None
    problems: list[str]
    gateways: dict[str, int] | None = None
    upstream: dict[str, Any] | None = None


class ServiceStatus(msgspec.Struct, frozen=True):
    """All nodes of a data directory.

    It is `ready` if every node answers and is ready, and `complete` if also all partitions are served everywhere.
    """

    version: str | None
    cluster_id: str | None
    ready: bool
    complete: bool
    nodes: list[NodeStatus]
    gateways: dict[str, int] | None
    upstream: dict[str, Any] | None
    problems: list[str]
    missing: list[UnservedPart]


def make_node_status(
    node: int,
    version: str,
    cluster_id: str,
    ready: Mapping[str, Any],
    groups: int,
    space: tuple[int, int] | None,
    journal_bytes: int,
    last_flush_ms: int | None,
) -> NodeStatus:
    """Return a node's status; `ready` are the fields of its /ready, `space` the free bytes of its disk and all."""
    found = list(_problems(ready))
    listed = found[:PROBLEMS_MAX]
    if len(found) > len(listed):
        listed.append(f"{len(found) - len(listed)} more problems: see /ready")
    return NodeStatus(
        node=node,
        version=version,
        cluster_id=cluster_id,
        ready=ready["ready"],
        complete=ready["complete"],
        groups=groups,
        partitions=ready["partitions_owned"],
        loading=len(ready["partitions_loading"]),
        disk_free=None if space is None else space[0],
        disk_size=None if space is None else space[1],
        journal_bytes=journal_bytes,
        last_flush_ms=last_flush_ms,
        problems=listed,
        gateways=ready.get("gateways"),
        upstream=ready.get("upstream"),
    )


def _problems(ready: Mapping[str, Any]) -> Iterator[str]:
    if ready["log_refusing_since"]:
        reason = ready["log_refusing_reason"]
        yield f"the log accepts no commits since {_time(ready['log_refusing_since'])}: {reason}"
    for job, since_s in ready["jobs_failing_since"].items():
        yield f"the job {job} fails since {_time(since_s)}"
    for partition, reason in ready["partitions_failed"].items():
        yield f"partition {partition} cannot be served: {reason}"
    for partition, reason in ready["partitions_in_wrong_place"].items():
        yield f"partition {partition} is in the wrong place: {reason}"
    if ready["partitions_waiting"]:
        yield f"{len(ready['partitions_waiting'])} partitions wait for the log to accept commits again"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_statuses(nodes: Sequence[NodeStatus], missing: Sequence[UnservedPart]) -> ServiceStatus:
    """Return the status of all nodes, in the order of their ids; `missing` are those that have not answered."""
    nodes = sorted(nodes, key=lambda each: each.node)
    first = nodes[0] if nodes else None
    gateways, upstream = (first.gateways, first.upstream) if first is not None else (None, None)
    problems = [f"node {each.node}: {problem}" for each in nodes for problem in each.problems]
    problems += _cluster_problems(gateways, upstream)
    problems += [_missing_problem(part) for part in missing]
    return ServiceStatus(
        version=first.version if first is not None else None,
        cluster_id=first.cluster_id if first is not None else None,
        ready=bool(nodes) and all(each.ready for each in nodes) and all(part.partitions for part in missing),
        complete=bool(nodes) and all(each.complete for each in nodes) and not missing,
        nodes=nodes,
        gateways=gateways,
        upstream=upstream,
        problems=problems,
        missing=list(missing),
    )


def _cluster_problems(
    gateways: Mapping[str, int] | None, upstream: Mapping[str, Any] | None
) -> Iterator[str]:
    if gateways is not None and gateways["serving"] < gateways["wanted"]:
        yield f"{gateways['serving']} of {gateways['wanted']} gateway processes accept clients"
    if upstream is None:
        return
    if upstream["error"]:
        yield f"the cluster cannot be used: {upstream['error']}"
    for broker, state in upstream["brokers"].items():
        if state["error"]:
            yield f"broker {broker} ({state['address']}): {state['error']}"


def _missing_problem(part: UnservedPart) -> str:
    where = name_node(part.node)
    shown = ", ".join(map(str, part.partitions[:PROBLEMS_MAX]))
    more = ", and more" if len(part.partitions) > PROBLEMS_MAX else ""
    return (
        f"{where}, partitions {shown}{more}: {part.reason}" if part.partitions else f"{where}: {part.reason}"
    )
