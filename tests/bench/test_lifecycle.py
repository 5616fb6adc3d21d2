# SPDX-License-Identifier: Apache-2.0
"""Starting servers, crashing them, and comparing what they kept."""

from collections import Counter

import pytest

from bench import filling
from bench.cluster import Cluster
from bench.filling import Filling
from bench.lifecycle import measure_restart, measure_start
from bench.servers import NotStarted, Server

SMALL = Filling(groups=30, partitions=20)


def test_start_measures_a_first_start_and_stops_again(own_server: Server) -> None:
    result = measure_start(own_server, idle_s=0)
    found = result["findings"]
    assert result["errors"] == 0
    assert 0 < found["listening_ms"] <= found["answering_ms"]
    assert found["idle_rss_mib"] > 1
    with pytest.raises(NotStarted):
        _ = own_server.pid


def test_restart_finds_every_offset_again(own_server: Server) -> None:
    result = measure_restart(own_server, SMALL)
    found = result["findings"]
    assert (result["errors"], result["error_kinds"]) == (0, {})
    assert found["offsets"] == 600
    assert 0 < found["listening_ms"] <= found["served_ms"] <= found["compared_ms"]


def test_a_lost_and_a_changed_offset_are_counted(own_server: Server) -> None:
    own_server.start()
    with Cluster(own_server.address) as cluster:
        topic = cluster.ensure_topic("bench", SMALL.partitions)
        names = SMALL.names()
        cluster.wait_until_served(names, topic)
        filling.fill(cluster, topic, SMALL)
        assert filling.compare(cluster, topic, SMALL) == Counter()
        cluster.commit_all(topic, {names[3]: {7: 1}})
        cluster.delete_groups([names[4]])
        errors = filling.compare(cluster, topic, SMALL)
    assert errors == Counter({"offset wrong": 1, "offset missing": SMALL.partitions})


def test_a_server_that_ends_at_once_is_quoted(own_server: Server) -> None:
    own_server.start()
    own_server.stop()
    # Its data directory is a file now, so it cannot start.
    own_server.reset()
    own_server.data.write_text("no directory")
    with pytest.raises(NotStarted, match="ended with code") as told:
        own_server.start()
    assert len(str(told.value).splitlines()) > 1
