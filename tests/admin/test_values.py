# SPDX-License-Identifier: Apache-2.0
"""Every metric against what was really done, and /ready while a node is not."""

import asyncio
import errno
import json
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from coordinator.admin.reference import gateway_metrics
from coordinator.admin.reference.metrics_markdown_page import heading
from coordinator.api import part_error_counting
from coordinator.api.declaration import Api
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    OffsetDeleteRequest,
    find_request_and_response_classes,
)
from protocol.newtypes import GroupId, LeaderEpoch, Partition
from storage.disk.filesystem import Space
from storage.format.batch import BatchBuilder
from storage.format.records import Record, UnknownRecord
from storage.journal.journal import Entry
from tests.net import requests
from tests.partitions.disk import SEGMENTS, SYNCS, WRITES
from tests.partitions.running import PARTITIONS, Running, commit_error, eventually, node
from tests.support.apis import APIS
from tests.support.calls import calls_of
from tests.support.file_logs import get_files, get_upkeep

DOC = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
GATEWAYS = heading("In front of a Kafka cluster")
OF_LAG = {metric.name for metric in gateway_metrics.OF_LAG.metrics}
"""Held to the page by tests/lag."""


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", metrics=True) as running:
        yield running


@pytest.fixture
async def naming(tmp_path: Path) -> AsyncIterator[Running]:
    """A node that names the two groups that do most."""
    async with node(tmp_path / "data", metrics=True, metrics_groups_top=2) as running:
        yield running


async def get(running: Running, path: str, accept: str = "*/*") -> tuple[int, str, str]:
    """Status, content type and body."""
    url = running.http(path)

    def ask() -> tuple[int, str, str]:
        request = urllib.request.Request(url, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read().decode()

    return await asyncio.to_thread(ask)


async def metric(running: Running, name: str, **labels: str) -> float:
    """The value of one sample, without the prefix; 0 for a counter that has not counted yet."""
    _, _, text = await get(running, "/metrics")
    for family in parse_text(text):
        for sample in family.samples:
            if sample.name == f"groupkeeper_{name}" and sample.labels == labels:
                return sample.value
    return 0.0


# --- readiness ---


async def test_a_node_that_loads_is_alive_and_not_ready(tmp_path: Path) -> None:
    last = PARTITIONS - 1
    async with node(tmp_path / "data") as running:
        await (await running.client()).commit(running.group_in(last), 0, 1)
    async with node(tmp_path / "data", held_partition=last, metrics=True) as running:
        assert await get(running, "/health") == (
            200,
            "application/json; charset=utf-8",
            '{"status": "alive"}',
        )
        status, content_type, body = await get(running, "/ready")
        assert (status, content_type) == (503, "application/json; charset=utf-8")
        state = json.loads(body)
        assert state.pop("loads")[str(last)].pop("milliseconds") >= 0
        assert state == {
            "ready": False,
            "complete": False,
            "log_refusing_since": None,
            "log_refusing_reason": None,
            "jobs_failing_since": {},
            "partitions_owned": last,
            "partitions_loading": [last],
            "partitions_waiting": [],
            "partitions_failed": {},
            "partitions_in_wrong_place": {},
        }
        size = get_files(running.app).get_or_create_log(Partition(last)).size_bytes
        assert await metric(running, "loading_size_bytes") == size > 0
        assert await metric(running, "loading_bytes") == 0, "its first read is held back"
        assert await metric(running, "partitions", state="loading") == 1
        running.disk.let_go()
        await running.loaded()
        assert (await get(running, "/ready"))[0] == 200
        assert await metric(running, "partitions", state="loading") == 0
        assert await metric(running, "loaded_records_total") == 1
        assert await metric(running, "loading_size_bytes") == 0


async def test_only_the_groups_that_do_most_are_named(naming: Running) -> None:
    running = naming
    client = await running.client()
    for group, commits in (("a", 1), ('b"\\\n', 3), ("c", 2)):
        for offset in range(commits):
            await client.commit(group, 0, offset)
    await client.join_alone("d")
    assert await metric(running, "group_offset_commits_total", consumergroup="a") == 0
    assert await metric(running, "group_offset_commits_total", consumergroup='b"\\\n') == 3
    assert await metric(running, "group_offset_commits_total", consumergroup="c") == 2
    assert await metric(running, "group_rebalances_total", consumergroup="d") == 1
    _, _, text = await get(running, "/metrics")
    assert len(re.findall(r"^groupkeeper_group_rebalances_total", text, re.MULTILINE)) == 1


async def test_the_groups_that_are_furthest_behind_their_ends_are_named(tmp_path: Path) -> None:
    """Where ends are declared; and no lag is made up where they are not."""
    async with node(tmp_path / "data", metrics=True, metrics_groups_top=2, end_group="made") as running:
        client = await running.client()
        for group, offset in (("near", 9), ("far", 1), ("beyond", 12), ("middle", 5)):
            assert not await client.commit(group, 0, offset)
        await running.app.lag_watch.measure_once()
        _, _, text = await get(running, "/metrics")
        assert "groupkeeper_group_lag{" not in text
        assert not await client.commit("made", 0, 10)
        await running.app.lag_watch.measure_once()
        _, _, text = await get(running, "/metrics")
        assert "groupkeeper_lag_left_out" not in text, "only some groups may be named: that is no trouble"
        named = re.findall(r"^groupkeeper_group_(?:lag|status|members)\{.*", text, re.MULTILINE)
        assert sorted(named) == [
            'groupkeeper_group_lag{consumergroup="far"} 9.0',
            'groupkeeper_group_lag{consumergroup="middle"} 5.0',
            'groupkeeper_group_members{consumergroup="far"} 0.0',
            'groupkeeper_group_members{consumergroup="middle"} 0.0',
            'groupkeeper_group_status{consumergroup="far",status="ok"} 1.0',
            'groupkeeper_group_status{consumergroup="middle",status="ok"} 1.0',
        ]


async def test_no_lag_is_measured_where_no_group_may_be_named(running: Running) -> None:
    assert "measure_lag" not in running.app.scheduler.jobs
    _, _, text = await get(running, "/metrics")
    assert "groupkeeper_group_" not in text.replace("groupkeeper_group_expirations", "")


async def test_the_room_on_the_disk_is_looked_at_again(running: Running) -> None:
    running.disk.room = Space(free=3, size=7)
    jobs = get_upkeep(running.app)
    await eventually(lambda: jobs.space == running.disk.room, "the disk to be looked at")
    assert await metric(running, "disk_free_bytes") == 3
    assert await metric(running, "disk_size_bytes") == 7


async def test_periodic_jobs_tell_how_often_and_how_long_they_ran_and_what_failed(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    job = running.app.scheduler.jobs["write_behind"]
    runs = job.runs
    await eventually(lambda: job.runs > runs, "the job to run by the clock")
    assert await metric(running, "job_runs_total", job="write_behind") > runs
    assert await metric(running, "job_failures_total", job="write_behind") == 0
    assert await metric(running, "job_last_duration_seconds", job="write_behind") == job.last_ms / 1e3
    await client.commit("g", 0, 2)
    failures = job.failures
    running.disk.fail(WRITES, times=1, where=SEGMENTS)
    await eventually(lambda: job.failures > failures, "the job to fail")
    assert await metric(running, "job_failures_total", job="write_behind") == failures + 1


async def test_a_node_with_a_damaged_partition_is_ready_but_not_complete_and_says_why(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        client = await running.client()
        for offset in range(3):
            await client.commit(running.group_in(1), 0, offset)
    segment = tmp_path / "data" / "__consumer_offsets-1" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[80] ^= 0xFF
    segment.write_bytes(data)
    async with node(tmp_path / "data", loaded=False, metrics=True) as running:
        await eventually(lambda: not running.app.manager.loading_partitions, "the loads to end")
        status, _, body = await get(running, "/ready")
        state = json.loads(body)
        assert (status, state["ready"], state["complete"]) == (200, True, False)
        assert (await get(running, "/ready?strict=1"))[0] == 503
        assert str(segment.parent) in state["partitions_failed"]["1"]
        assert await metric(running, "partitions", state="failed") == 1
        assert await metric(running, "partitions", state="owned") == PARTITIONS - 1
        assert await metric(running, "partition_load_failures_total") == 1
        client = await running.client()
        heard = await client.commit(running.group_in(1), 0, 4)
        assert not await client.commit(running.group_in(2), 0, 4)
    assert heard is ErrorCode.NOT_COORDINATOR
    for page, title in (
        ("troubleshooting.md", "## Damage"),
        ("runbooks.md", "## GroupkeeperPartitionsFailed"),
    ):
        section = (DOC.parent / page).read_text().partition(title)[2].partition("\n## ")[0]
        assert f"receive {heard.name}" in " ".join(section.split())


async def test_ready_says_what_cannot_be_written_and_what_fails(tmp_path: Path) -> None:
    async with node(tmp_path / "data", journal_checkpoint_interval_ms=100, metrics=True) as running:
        client = await running.client()
        assert (await get(running, "/ready?strict=1"))[0] == 200
        running.disk.fail(WRITES, where="recovery-point")
        await client.commit("g", 0, 1)
        job = running.app.scheduler.jobs["checkpoint"]
        await eventually(lambda: job.failures, "a checkpoint to fail")
        status, _, body = await get(running, "/ready?strict=1")
        assert (status, list(json.loads(body)["jobs_failing_since"])) == (200, ["checkpoint"])
        running.disk.fail(WRITES | SYNCS)
        for partition in range(PARTITIONS // 2 - 1):
            await client.commit(running.group_in(partition), 0, 1)
        status, _, body = await get(running, "/ready")
        state = json.loads(body)
        assert (status, state["partitions_waiting"]) == (200, [0]), "three of four are served"
        assert state["log_refusing_since"] > 0
        assert "Input/output error" in state["log_refusing_reason"]
        assert (await get(running, "/ready?strict=1"))[0] == 503
        await client.commit(running.group_in(PARTITIONS - 1), 0, 1)
        assert (await get(running, "/ready"))[0] == 503, "half of them is not most"
        running.disk.heal()
        await running.loaded()
        assert (await get(running, "/ready?strict=1"))[0] == 200


async def test_strict_is_0_or_1(running: Running) -> None:
    assert (await get(running, "/ready?strict=yes"))[0] == 400
    assert (await get(running, "/ready?strict=0"))[0] == 200


async def test_other_paths_are_not_found(running: Running) -> None:
    assert (await get(running, "/other"))[0] == 404
    assert (await get(running, "/metrics/x"))[0] == 404


# --- the exposition ---


async def families(running: Running) -> dict[str, Metric]:
    """Ours by name, once everything that has labels has counted something."""
    client = await running.client()
    await client.join_alone("g")
    await client.heartbeat("g", "nobody", 1)
    _, _, text = await get(running, "/metrics")
    found = {family.name: family for family in parse_text(text)}
    return {name: family for name, family in found.items() if name.startswith("groupkeeper_")}


async def test_both_formats_parse_and_agree(running: Running) -> None:
    _, plain_type, plain = await get(running, "/metrics")
    _, open_type, openmetrics = await get(running, "/metrics", "application/openmetrics-text; version=1.0.0")
    assert plain_type.startswith("text/plain; version=")
    assert open_type.startswith("application/openmetrics-text; version=1.0.0")
    names = [
        sorted(f.name for f in parse(text))
        for parse, text in ((parse_text, plain), (parse_openmetrics, openmetrics))
    ]
    assert names[0] == names[1]
    assert len(names[0]) > 30


async def test_every_metric_is_explained_and_in_base_units(running: Running) -> None:
    known_units = ("seconds", "bytes")
    for name, family in (await families(running)).items():
        assert family.documentation.endswith("."), name
        assert family.samples, f"{name} shows nothing"
        assert not re.search(r"_(ms|millis|milliseconds|kb|mb|kib|mib|minutes|percent)(_|$)", name), name
        if family.type == "histogram":
            assert name.endswith(known_units), name


async def test_the_page_has_the_right_type_and_labels(naming: Running) -> None:
    assert not await (await naming.client()).commit("committer", 0, 1)
    naming.app.stats.upstream_up, naming.app.stats.upstream_brokers = True, {1: True}  # as behind a gateway
    explained = {
        name: (kind.lower(), set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in re.findall(
            r"^\| `(groupkeeper_\w+)` \| .+ \| (\w+), [^.]+\.(?: Labels: ([^.]*)\.)?",
            DOC.read_text().partition(GATEWAYS)[0],
            re.MULTILINE,
        )
    }
    shown = {
        name + ("_total" if family.type == "counter" else ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels} - {"le"},
        )
        for name, family in (await families(naming)).items()
        if name not in OF_LAG
    }
    assert shown == explained


async def test_no_label_has_a_value_that_a_client_chose(running: Running) -> None:
    client = await running.client()
    await client.commit("chosen-group", 0, 1)
    client.send(requests.framed(requests.header(999, 0)))
    await client.until_closed()
    other = await running.client()
    await other.join_alone("chosen-group-2")
    _, _, text = await get(running, "/metrics")
    assert "chosen" not in text
    assert "999" not in re.sub(r"[\d.e+-]+$", "", text, flags=re.MULTILINE)


# --- values ---


async def test_requests_errors_and_bytes(running: Running) -> None:
    client = await running.client()
    before = await metric(running, "requests_total", api="heartbeat")
    received = await metric(running, "received_bytes_total")
    sent = await metric(running, "sent_bytes_total")
    frame = requests.heartbeat("g", "nobody", 1)
    answer_bytes = 0
    for _ in range(3):
        answer_bytes += len(await client.ask(frame)) + 4
    assert await metric(running, "requests_total", api="heartbeat") == before + 3
    assert await metric(running, "request_errors_total", api="heartbeat", error="unknown_member_id") == 3
    assert await metric(running, "received_bytes_total") == received + 3 * len(frame)
    assert await metric(running, "sent_bytes_total") == sent + answer_bytes


async def test_connections(tmp_path: Path) -> None:
    async with node(tmp_path / "data", max_connections_per_ip=2, metrics=True) as running:
        first, second = await running.client(), await running.client()
        for client in (first, second):
            await client.ask(requests.api_versions())
        refused = await running.client()
        await refused.until_closed()
        assert await metric(running, "connections") == 2
        assert await metric(running, "connections_accepted_total") == 2
        assert await metric(running, "connections_refused_total") == 1
        await first.close()
        await eventually(
            lambda: len(running.app.server.connections if running.app.server else ()) == 1, "the end"
        )
        assert await metric(running, "connections") == 1
        await (await running.client()).ask(requests.api_versions())
        assert await metric(running, "connections_accepted_total") == 3


async def test_requests_that_break_the_protocol(running: Running) -> None:
    malformed = [b"\xff\xff\xff\xff", requests.framed(b"?"), requests.heartbeat("g", "m", 1)[:-3]]
    malformed[2] = requests.framed(malformed[2][4:])
    for data in (*malformed, requests.framed(requests.header(requests.NOT_SERVED, 0))):
        client = await running.client()
        client.send(data)
        await client.until_closed()
    assert await metric(running, "malformed_requests_total") == 3
    assert await metric(running, "unsupported_requests_total") == 1
    assert await metric(running, "connections") == 0


async def test_idle_connections(tmp_path: Path) -> None:
    async with node(tmp_path / "data", connections_max_idle_ms=1, metrics=True) as running:
        client = await running.client()
        await client.until_closed()
        assert await metric(running, "connections_idle_closed_total") == 1


async def test_offsets_and_groups(running: Running) -> None:
    client = await running.client()
    await client.ask(requests.commit("a", {0: 1, 1: 1, 2: 1}))
    await client.ask(requests.commit("b", dict.fromkeys(range(4), 1)))
    member_id, generation = await client.join_alone("c")
    await client.commit("c", 0, 1, member_id=member_id, generation=generation)
    assert await client.commit("c", 0, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    await client.fetch("a")
    await client.ask(requests.fetch_groups("a", "b", "nobody"))
    assert await metric(running, "offset_commits_total") == 8, "refused ones do not count"
    assert await metric(running, "offset_fetches_total") == 4
    assert await metric(running, "offsets") == 8
    assert await metric(running, "members") == 1
    assert await metric(running, "groups", state="Empty") == 2
    assert await metric(running, "groups", state="Stable") == 1
    assert await metric(running, "rebalances_total", cause="member_joined") == 1

    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    gone = topic(
        name=requests.TOPIC,
        partitions=[topic.OffsetDeleteRequestPartition(partition_index=index) for index in (1, 2, 9)],
    )
    await client.ask(
        requests.request(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="a", topics=[gone]))
    )
    assert await metric(running, "offset_deletions_total") == 2
    await client.ask(requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["b"])))
    assert await metric(running, "offset_deletions_total") == 6
    list(running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC})))
    assert await metric(running, "offset_deletions_total") == 8
    assert await metric(running, "offsets") == 0
    assert await metric(running, "groups", state="Empty") == 1
    await client.ask(requests.leave("c", member_id))
    assert await metric(running, "rebalances_total", cause="member_left") == 1
    assert await metric(running, "members") == 0


async def test_expirations(tmp_path: Path) -> None:
    async with node(tmp_path / "data", offsets_retention_check_interval_ms=20, metrics=True) as running:
        client = await running.client()
        await client.ask(requests.commit("a", {0: 1, 1: 1}, version=4, retention_ms=0))
        await eventually(lambda: running.app.stats.groups_expired, "the group to expire")
        assert await metric(running, "offset_expirations_total") == 2
        assert await metric(running, "group_expirations_total") == 1


async def test_flushes_and_the_journal(running: Running) -> None:
    client = await running.client()
    count = await metric(running, "flush_duration_seconds_count")
    journal = await metric(running, "journal_bytes")
    for offset in range(5):
        assert await client.commit("g", 0, offset) is ErrorCode.NONE
    assert await metric(running, "flush_duration_seconds_count") == count + 5
    assert await metric(running, "flush_duration_seconds_bucket", le="+Inf") == count + 5
    assert await metric(running, "flush_duration_seconds_sum") > 0
    assert await metric(running, "journal_bytes") > journal
    running.disk.fail(SYNCS, times=1, code=errno.EIO)
    assert await client.commit("g", 0, 6) is ErrorCode.NOT_COORDINATOR
    assert await metric(running, "flush_failures_total") == 1
    assert await metric(running, "flush_duration_seconds_count") == count + 5, "a failed flush is no flush"


async def test_loads_and_records_of_unknown_kinds(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        client = await running.client()
        for group in ("a", "b", "c"):
            await client.commit(group, 0, 1)
        await eventually(lambda: running.app.log.groups.is_idle, "the flushes")
        log = get_files(running.app)
        unknown: list[Record] = [UnknownRecord(key_version=17, key=b"\x00\x11x", value=b"y")]
        builder = BatchBuilder()
        builder.append_in_one_batch(unknown)
        (batch,) = builder.build(log.end_offset(Partition(0)), LeaderEpoch(0), 1)
        log.append([Entry(Partition(0), log.end_offset(Partition(0)), batch)], sync=True)
    async with node(tmp_path / "data", metrics=True) as running:
        assert await metric(running, "partition_loads_total") == PARTITIONS
        assert await metric(running, "loaded_records_total") == 4
        assert await metric(running, "unknown_records_total") == 1
        assert await metric(running, "offsets") == 3
        assert await metric(running, "partition_load_failures_total") == 0
        assert await metric(running, "partition_load_seconds_max") >= 0


async def test_a_pause_of_the_loop_shows(running: Running) -> None:
    class Late:
        """A clock that has jumped."""

        def __getattr__(self, name: str) -> Any:
            real = getattr(running.app.clock, name)
            return (lambda: real() + 1_234_000) if name == "mono_ms" else real

    before = running.app.stats.loop_pause_ms_max
    assert before < 1_000_000
    running.app.loop_watch._clock = Late()
    await eventually(lambda: running.app.stats.loop_pause_ms_max > 1_000_000, "the watch to notice")
    assert await metric(running, "loop_pause_seconds_max") >= 1_234 - 1


async def errors(running: Running, api: str) -> dict[str, float]:
    """How often each error was in an answer of this api."""
    _, _, text = await get(running, "/metrics")
    return {
        sample.labels["error"]: sample.value
        for family in parse_text(text)
        for sample in family.samples
        if sample.name == "groupkeeper_request_errors_total" and sample.labels["api"] == api
    }


async def test_errors_of_single_partitions_are_counted_one_by_one(running: Running) -> None:
    client = await running.client()
    error = commit_error(await client.ask(requests.commit("g", {0: 1, 1: 1}, generation=5, member_id="m")))
    assert error is ErrorCode.ILLEGAL_GENERATION
    assert await errors(running, "offset_commit") == {"illegal_generation": 2}
    assert await metric(running, "requests_total", api="offset_commit") == 1
    await client.ask(requests.commit("g", {0: 1, 1: 1, 100: 1, 101: 1}))
    assert await errors(running, "offset_commit") == {
        "illegal_generation": 2,
        "unknown_topic_or_partition": 2,
    }
    running.disk.fail(SYNCS, times=1)
    await client.ask(requests.commit("g", {0: 1, 1: 1}))
    assert (await errors(running, "offset_commit"))["not_coordinator"] == 2


async def test_errors_of_single_groups_and_topics_are_counted(running: Running) -> None:
    client = await running.client()
    await client.ask(requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["a", "b"])))
    assert await errors(running, "delete_groups") == {"group_id_not_found": 2}
    running.app.leadership.resign(running.app.manager.partition_for(GroupId("g")), LeaderEpoch(1_000))
    await client.ask(requests.fetch_groups("g"))
    assert await errors(running, "offset_fetch") == {"not_coordinator": 1}


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_the_parts_whose_errors_are_counted_are_where_the_schema_has_errors(api: Api[Any, Any]) -> None:
    response = find_request_and_response_classes(api.key)[1]
    fields, codes = response._struct.fields, []
    for part in api.error_parts:
        struct = fields[part].array_of
        fields = struct.fields
        codes.append("error_code" in fields)
    assert not codes or codes[-1]
    has_parts = any(
        field.is_struct_array() and "error_code" in field.array_of.fields
        for field in response._struct.fields.values()
    )
    assert api.error_parts or not has_parts
    assert api.error_parts or "error_code" in response._struct.fields


async def test_good_answers_of_members_are_not_looked_through(running: Running) -> None:
    client = await running.client()
    with calls_of("record_part_errors", part_error_counting) as looked:
        await client.commit("g", 0, 1)
        await client.fetch("g")
        await client.ask(requests.fetch_groups("g"))
        assert looked == []
        await client.ask(requests.commit("g", {0: 1}, generation=5, member_id="m"))
        assert [call["key"] for call in looked] == [ApiKey.OFFSET_COMMIT]


# --- while the disk does not work ---


async def test_a_node_that_refuses_commits_says_so_as_long_as_it_does(running: Running) -> None:
    client = await running.client()
    group, other = running.group_in(1), running.group_in(2)
    await client.commit(group, 0, 1)
    good = await metric(running, "last_flush_timestamp_seconds")
    assert good > 0
    assert await metric(running, "log_refusing_since_timestamp_seconds") == 0
    assert await metric(running, "partitions_unwritable") == 0
    running.disk.fail(WRITES | SYNCS)
    assert await client.commit(group, 0, 2) is ErrorCode.NOT_COORDINATOR
    failures = running.disk.failures
    await eventually(lambda: running.disk.failures > failures + 3, "some tries to repair the journal")
    since = await metric(running, "log_refusing_since_timestamp_seconds")
    assert since >= int(good)
    assert await metric(running, "partitions_unwritable") == PARTITIONS
    assert await metric(running, "partitions", state="waiting") == 1
    assert await metric(running, "partitions", state="loading") == 0
    assert await metric(running, "last_flush_timestamp_seconds") == good
    assert await client.commit(other, 0, 2) is ErrorCode.NOT_COORDINATOR
    assert await metric(running, "partitions", state="waiting") == 2
    assert await metric(running, "log_refusing_since_timestamp_seconds") == since
    running.disk.heal()
    await running.loaded()
    assert await metric(running, "log_refusing_since_timestamp_seconds") == 0
    assert await metric(running, "partitions_unwritable") == 0
    assert await client.commit(group, 0, 3) is ErrorCode.NONE
    assert await metric(running, "last_flush_timestamp_seconds") > good


async def test_checkpoints_that_fail_again_and_again_show_since_when(tmp_path: Path) -> None:
    async with node(tmp_path / "data", journal_checkpoint_interval_ms=100, metrics=True) as running:
        job = running.app.scheduler.jobs["checkpoint"]
        client = await running.client()
        running.disk.fail(WRITES, where="recovery-point")
        await client.commit("g", 0, 1)
        await eventually(lambda: job.failures >= 1, "a checkpoint to fail")
        since = await metric(running, "job_failing_since_timestamp_seconds", job="checkpoint")
        assert since > 0
        failures = job.failures
        await eventually(lambda: job.failures > failures, "another one to fail")
        assert await metric(running, "job_failing_since_timestamp_seconds", job="checkpoint") == since
        running.disk.heal()
        await eventually(lambda: not job.failing_since_ms, "one that succeeds")
        assert await metric(running, "job_failing_since_timestamp_seconds", job="checkpoint") == 0
