# SPDX-License-Identifier: Apache-2.0
"""Playing one scenario against a server that runs, from preparing to the result."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import uvloop

from bench import churn, load
from bench.cluster import Address, Cluster, Unprepared
from bench.load import Lane, Measured, Window
from bench.procstat import tree_rss_bytes
from bench.report import Result, describe_load
from bench.scenarios import SHAPES, Shape, set_stage
from bench.wire import BadReply

GROUPS: Final = "groups"
GROUPS_SHAPE: Final = Shape(groups=10_000)
PLAYED: Final = (*SHAPES, GROUPS)


@dataclass(frozen=True, slots=True)
class Options:
    """How to play."""

    bootstrap: Address
    server_pids: Sequence[int] = ()
    duration_s: float = 5.0
    warmup_s: float = 1.0
    requests: int | None = None  # instead of a duration: so many requests, without a warm-up
    changes: Mapping[str, int | None] = field(default_factory=dict)  # of the scenario's shape
    caps: Mapping[str, int] = field(default_factory=dict)  # highest version by api name
    prefix: str = "bench"


def play(scenario: str, options: Options) -> Result:
    """Play one scenario and clear up. Raises Unprepared."""
    try:
        with Cluster(options.bootstrap, options.caps) as cluster:
            return (
                _play_groups(cluster, options)
                if scenario == GROUPS
                else _play_load(cluster, scenario, options)
            )
    except OSError as error:
        raise Unprepared(f"{scenario}: {error}") from error


def _play_load(cluster: Cluster, scenario: str, options: Options) -> Result:
    shape = SHAPES[scenario].changed(options.changes)
    stage = set_stage(cluster, scenario, shape, prefix=options.prefix, limit=options.requests)
    with contextlib.ExitStack() as stack:
        stack.callback(_clear, stage.clear)
        window = Window() if options.requests else Window(options.warmup_s, options.duration_s)
        result = describe_load(scenario, _run(stage.lanes, shape.depth, window, options))
    return {**result, "shape": _described(shape, stage.lanes), "versions": cluster.versions}


def _play_groups(cluster: Cluster, options: Options) -> Result:
    shape = GROUPS_SHAPE.changed(options.changes)
    prepared = churn.prepare(cluster, shape, prefix=options.prefix)
    with contextlib.ExitStack() as stack:
        stack.callback(_clear, prepared.clear)
        before = _rss(options.server_pids)
        measured = _run(prepared.lanes, shape.depth, Window(), options)
        after = _rss(options.server_pids)
    completed = prepared.recipe.completed
    findings: dict[str, float] = {
        "groups": completed,
        "groups_per_s": round(completed / measured.seconds, 1),
    }
    if options.server_pids and completed:
        findings["rss_bytes_per_group"] = round((after - before) / completed)
    measured.errors.update(
        {"group not completed": shape.groups - completed} if completed < shape.groups else {}
    )
    result = describe_load(GROUPS, measured)
    shown = _described(shape, prepared.lanes)
    return {**result, "findings": findings, "shape": shown, "versions": cluster.versions}


def _run(lanes: Sequence[Lane], depth: int, window: Window, options: Options) -> Measured:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(load.run(lanes, depth, window, options.server_pids))


def _rss(pids: Sequence[int]) -> int:
    return sum(tree_rss_bytes(pid) for pid in pids)


def _clear(clear: Callable[[], None]) -> None:
    # Clearing up is a courtesy: the measurement stands even when the server is gone by now.
    with contextlib.suppress(OSError, BadReply, Unprepared):
        clear()


def _described(shape: Shape, lanes: Sequence[Lane]) -> dict[str, int]:
    return {
        "connections": len(lanes),
        "depth": shape.depth,
        "groups": shape.groups,
        "partitions": shape.partitions,
    }
