# SPDX-License-Identifier: Apache-2.0
"""What a worker hears with the order to lead a partition."""

import asyncio
from pathlib import Path
from typing import Any

from coordinator.catalogue.store import CatalogueStore
from coordinator.config import Settings
from coordinator.config.log_settings import log_settings
from coordinator.machine import real_machine
from coordinator.topology.view import Leader
from coordinator.workers import messages
from coordinator.workers.assignment import Assignment
from coordinator.workers.dispatch import Dispatch
from coordinator.workers.topic_feed import TopicFeed
from protocol.names import LeaderEpoch
from storage.recovery.shared import SharedDirectory
from tests.partitions.running import eventually


async def test_an_order_to_lead_names_the_topics_that_went_and_the_version_without_them(
    tmp_path: Path,
) -> None:
    loop, machine = asyncio.get_running_loop(), real_machine()
    io = machine.thread(loop, "test-io")
    settings = Settings(data_dir=tmp_path, offsets_topic_num_partitions=2)
    shared, _ = SharedDirectory.open(tmp_path, log_settings(settings), machine.fs)
    store = CatalogueStore(tmp_path, io.submit, fs=machine.fs, new_topic_id=machine.new_topic_id)
    store.load(2)
    feed = TopicFeed(lambda: store.catalogue)
    store.on_changed, store.topics_version = feed.changed, lambda: feed.version
    assignment = Assignment([Leader(1, LeaderEpoch(0))] * 2, [1])
    told: list[Any] = []
    dispatch = Dispatch(
        loop, io, machine.fs, tmp_path, assignment, shared, store, lambda _node, message: told.append(message)
    )
    try:
        store.change(lambda draft: draft.create("t", 1, topic_id=b"t" * 16), lambda _made: None)
        store.change(lambda draft: draft.delete("t"), lambda _gone: None)
        await eventually(lambda: store.deletions.number == 1, "the deletion")
        assignment.came_up(1)
        dispatch.send(assignment.commands())
        await eventually(lambda: len(told) == 4, "the orders")
        gone = [(each.partition, each.topics) for each in told if isinstance(each, messages.DeletedMeanwhile)]
        assert gone == [(0, ["t"]), (1, ["t"])]
        assert feed.version > 0
        assert [each.topics_version for each in told if isinstance(each, messages.Lead)] == [feed.version] * 2
        assert dispatch.handed == [1, 1]
    finally:
        io.close()
        shared.close(clean=True)
