# SPDX-License-Identifier: Apache-2.0
"""Every check finds the log that was damaged for it, and none of those that were not."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from audit.checks import query_findings
from audit.options import AuditOptions, WorkSizes
from audit.report.collect import collect_findings
from audit.report.model import Report
from audit.run.audit import audit
from audit.run.reading import read_facts
from protocol.newtypes import GroupId, Offset, Partition
from protocol.placement import partition_for
from storage.disk.checkpoint_file import write_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_FILE,
    OFFSETS_TOPIC,
    OPEN_JOURNALS_FILE,
    TAKEN_OVER_FILE,
)
from tests.audit.damaged import ALSO, MUST_FLAG, MUST_PASS, write_all
from tests.audit.logs import NOW, PARTITIONS, Log, commit, inventory_of, stored


class Audited(msgspec.Struct):
    """An audit of all the logs, damaged and whole."""

    report: Report
    log_dir: Path
    places: Mapping[str, int]

    def checks_in(self, name: str) -> set[str]:
        """The checks that found this log."""
        return {finding.check for finding in self.report.findings if finding.partition == self.places[name]}


@pytest.fixture(scope="module")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    work = tmp_path_factory.mktemp("damaged")
    places = write_all(work / "log")
    options = AuditOptions(log_dirs=(str(work / "log"),), out=str(work / "out"), as_of_ms=NOW)
    return Audited(audit(spark, options), work / "log", places)


@pytest.mark.parametrize("name", MUST_FLAG)
def test_damage_is_told(audited: Audited, name: str) -> None:
    check, _ = MUST_FLAG[name]
    assert audited.checks_in(name) - ALSO.get(name, set()) == {check}


@pytest.mark.parametrize("name", MUST_PASS)
def test_what_is_whole_passes(audited: Audited, name: str) -> None:
    assert audited.checks_in(name) == set()


def test_it_is_all_the_same_how_the_files_are_cut(spark: SparkSession, audited: Audited) -> None:
    """Every batch in a range of its own: what is seen between ranges is what is seen inside of one."""
    options = AuditOptions(log_dirs=(str(audited.log_dir),), out="", as_of_ms=NOW)
    inventory = inventory_of(options)
    cut = read_facts(spark, msgspec.structs.replace(options, cutting=WorkSizes(chunk_rows=1)), inventory)
    assert cut.ranges.count() > 300
    found = {(one.check, one.partition) for one in collect_findings(query_findings(cut))}
    expected = {(one.check, one.partition) for one in audited.report.findings}
    # What changes from one record of a group to the next is not counted across ranges, which have thousands of them.
    by_record = {"rebalance_storm", "members_flapping"}
    assert {one for one in expected if one[0] not in by_record} == found
    whole = read_facts(spark, options, inventory)
    for name in ("offsets", "groups"):
        tables = [getattr(one, name).drop("back").orderBy("partition", "log_offset") for one in (cut, whole)]
        assertDataFrameEqual(*tables)


def test_it_is_all_the_same_in_how_many_tasks_the_summaries_are_merged(
    spark: SparkSession, audited: Audited
) -> None:
    """A log of many groups is merged in several tasks, and with compiled queries."""
    options = AuditOptions(log_dirs=(str(audited.log_dir),), out="", as_of_ms=NOW)
    inventory = inventory_of(options)
    many = read_facts(spark, msgspec.structs.replace(options, cutting=WorkSizes(merged_rows=100)), inventory)
    assert many.spread > 2
    assert spark.conf.get("spark.sql.codegen.wholeStage") == "true"
    assert collect_findings(query_findings(many)) == list(audited.report.findings)
    one = read_facts(spark, options, inventory)
    assert one.spread == 1
    for name in ("offsets", "groups", "ranges", "sightings"):
        keys = ["partition", "log_offset" if name in ("offsets", "groups") else "file"]
        tables = [getattr(each, name).orderBy(*keys) for each in (one, many)]
        assertDataFrameEqual(*tables)


def test_nothing_is_said_of_all_the_other_logs(audited: Audited) -> None:
    told = {finding.partition for finding in audited.report.findings}
    assert told == set(range(len(MUST_FLAG)))
    assert audited.report.run.partitions == PARTITIONS


def test_a_topic_that_has_got_more_partitions(spark: SparkSession, tmp_path: Path) -> None:
    logs = [Log(tmp_path, partition) for partition in range(PARTITIONS)]
    names = [f"group-{number}" for number in range(60)]
    for name in names:
        logs[partition_for(GroupId(name), 20)].add(commit(name, 7), stored(name, 1))
    options = AuditOptions(log_dirs=(str(tmp_path),), out="", as_of_ms=NOW)
    found = collect_findings(query_findings(read_facts(spark, options, inventory_of(options))))
    moved = [
        name for name in names if partition_for(GroupId(name), 20) != partition_for(GroupId(name), PARTITIONS)
    ]
    grown = [
        one for one in found if one.check in ("topic_has_grown", "wrong_partition", "directory_misplaced")
    ]
    assert {(one.check, one.severity) for one in grown} == {("topic_has_grown", "warning")}
    assert sum(one.count for one in grown) == len(moved) > 20
    said = " ".join(one.message for one in grown)
    assert all(repr(name) in said for name in moved)
    assert {one.message.partition(":")[0] for one in grown} == {"these groups were placed by 20 partitions"}


@pytest.mark.parametrize("as_url", [False, True])
def test_a_gap_proves_a_loss_only_in_what_a_node_wrote(
    spark: SparkSession, tmp_path: Path, as_url: bool
) -> None:
    """Before the first batch, within a file and between two; and a first segment that is not there."""
    fs, log_dir = RealFileSystem(), tmp_path / "log"
    for partition in range(4):
        log = Log(log_dir, partition, start=50 if partition == 3 else 0)
        for _ in range(3):
            log.skip(5).add(commit(log.group, 1)).roll().skip(5)
        log.add(commit(log.group, 2))
    never = {(OFFSETS_TOPIC, Partition(partition)): Offset(0) for partition in range(4)}
    write_offsets(fs, log_dir / CLEANER_OFFSET_FILE, never)
    where = f"file:{log_dir}" if as_url else str(log_dir)

    def told() -> dict[tuple[str, str], set[int | None]]:
        report = audit(
            spark, AuditOptions(log_dirs=(where,), out=str(tmp_path / "out"), as_of_ms=NOW, num_partitions=50)
        )
        found: dict[tuple[str, str], set[int | None]] = {}
        for one in report.findings:
            if one.check in ("offset_gap", "replica_gap"):
                found.setdefault((one.check, one.severity), set()).add(one.partition)
        return found

    def stopped(stop: str, mark: str) -> None:
        (log_dir / OPEN_JOURNALS_FILE).write_text(f'{{"journals":{{}},"closed":"{stop}","version":1}}')
        (log_dir / CLEAN_SHUTDOWN_FILE).write_text(f'{{"version":0,"brokerEpoch":-1,"id":"{mark}"}}')

    a_broker_wrote_it = {("replica_gap", "info"): {0, 1, 2, 3}}
    assert told() == a_broker_wrote_it
    stopped("one", "another")  # a broker was here after us
    assert told() == a_broker_wrote_it
    stopped("one", "one")
    assert told() == {("offset_gap", "error"): {0, 1, 2, 3}}
    # A broker wrote all of 0, most of 1, nothing of 2, and the first segment of 3 was gone then.
    ends = {0: 1_000, 1: 20, 3: 50}
    write_offsets(
        fs, log_dir / TAKEN_OVER_FILE, {(OFFSETS_TOPIC, Partition(p)): Offset(at) for p, at in ends.items()}
    )
    assert told() == {("replica_gap", "info"): {0, 1}, ("offset_gap", "error"): {1, 2, 3}}
