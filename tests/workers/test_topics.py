# SPDX-License-Identifier: Apache-2.0
"""Topics of several nodes: however many there are, workers start, and hear of each change."""

from pathlib import Path

import pytest

from coordinator.catalogue.file import CatalogueFile
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.workers.channel import MESSAGE_BYTES_MAX
from storage.disk.filesystem import RealFileSystem
from tests.support import raw
from tests.support.waiting import wait_until
from tests.workers.nodes import PARTITIONS, Nodes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def partitions(address: str, topic: str) -> int:
    """How many partitions a node says that a topic has; 0 if it knows none."""
    (found,) = raw.metadata(address, topic).topics
    return len(found.partitions)


def test_workers_start_with_settings_of_many_megabytes_and_hear_of_changes(tmp_path: Path) -> None:
    """Sent in one message these settings had more bytes than a message may have, and no worker could start."""
    nodes = Nodes(tmp_path, 2)
    nodes.data_dir.mkdir()
    configs = {"compression.type": "gzip" + " " * 4_000}
    topics = [
        Topic(name=f"t{number}", id=(number + 1).to_bytes(16, "big"), partitions=1, configs=configs)
        for number in range(5_000)
    ]
    assert len(topics) * 4_000 > MESSAGE_BYTES_MAX
    internal = Topic(name=OFFSETS_TOPIC, id=b"o" * 16, partitions=PARTITIONS)
    CatalogueFile(RealFileSystem(), nodes.data_dir).make(internal, topics)
    try:
        nodes.start()
        first, second = nodes.address(1), nodes.address(2)
        for address in (first, second):
            assert [partitions(address, name) for name in ("t0", "t4999", "new")] == [1, 1, 0]
        raw.create_topic(second, "new", 3)
        assert partitions(second, "new") == 3
        wait_until(lambda: partitions(first, "new") == 3, what="the new topic at the other node")
        raw.delete_topic(first, "t7")
        assert partitions(first, "t7") == 0
        wait_until(lambda: partitions(second, "t7") == 0, what="its end at the other node")
        nodes.terminate()
    finally:
        nodes.close()
