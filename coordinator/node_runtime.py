# SPDX-License-Identifier: Apache-2.0
"""The resources that all components of a node share."""

import asyncio
from dataclasses import dataclass

from coordinator.config import Settings
from coordinator.host_resources import HostResources
from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.telemetry.stats import Stats


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """The settings, event loop, machine and counters of a node, and the thread for calls that may wait for the disk."""

    settings: Settings
    loop: asyncio.AbstractEventLoop
    machine: HostResources
    stats: Stats
    io: BlockingCallThread


def start_node_runtime(
    settings: Settings, loop: asyncio.AbstractEventLoop, machine: HostResources
) -> NodeRuntime:
    """Create the resources of a node, and start its io thread."""
    return NodeRuntime(settings, loop, machine, Stats(), machine.thread(loop, "groupkeeper-io"))
