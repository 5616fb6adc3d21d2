# SPDX-License-Identifier: Apache-2.0
"""Logs on a file system that only Spark can read: what is found there is what is found in local directories."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit.errors import AuditError
from audit.options import AuditOptions
from audit.report.model import Report
from audit.run.audit import audit
from bench.installed import groupkeeper
from bench.maven import Missing, locate_jars
from tests.audit.damaged import write_all
from tests.audit.logs import AS_OF, NOW, Log, healthy
from tests.support.missing import skip_or_fail
from tests.support.processes import tied_to_us
from tests.support.waiting import wait_until

START_TIMEOUT_S = 120


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs with all kinds of damage, and checkpoint files."""
    directory = tmp_path_factory.mktemp("damaged") / "log"
    write_all(directory)
    return directory


@pytest.fixture(scope="module")
def hdfs(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real HDFS, a namenode and a datanode, on loopback."""
    jars = locate_jars("hdfs-3.5.0", Path(__file__).with_name("hdfs-pom.xml"))
    if isinstance(jars, Missing):
        skip_or_fail(jars.reason)
    work = tmp_path_factory.mktemp("hdfs")
    details = work / "details.json"
    command = ["java", f"-Dtest.build.data={work}", "-cp", f"{jars}/*"]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-writeDetails", str(details)]
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(tied_to_us(command), cwd=work, stdout=log, stderr=log)
    try:
        wait_until(
            lambda: process.poll() is not None or _port(details) is not None, timeout_s=START_TIMEOUT_S
        )
        assert process.poll() is None, (work / "log").read_text()[-2_000:]
        yield f"hdfs://127.0.0.1:{_port(details)}"
    finally:
        process.kill()
        process.wait()


def _port(details: Path) -> int | None:
    try:
        return int(json.loads(details.read_text())["namenode_port"])
    except (FileNotFoundError, ValueError):
        return None


def put(spark: SparkSession, local: Path, url: str) -> None:
    """Copy a directory to where Spark reads `url`."""
    java, context = spark._jvm, spark._jsc
    assert java is not None
    place = java.org.apache.hadoop.fs.Path(url)
    system = place.getFileSystem(context.hadoopConfiguration())
    system.copyFromLocalFile(java.org.apache.hadoop.fs.Path(str(local)), place)


def told(report: Report, log_dir: str) -> list[tuple[object, ...]]:
    """What was found, with places inside of the log directory."""
    return [
        (
            one.check,
            one.partition,
            (one.file or "").replace(log_dir, ""),
            one.position,
            one.count,
            one.message.replace(log_dir, ""),
        )
        for one in report.findings
    ]


@pytest.mark.slow
def test_an_audit_of_hdfs_finds_what_one_of_local_files_does(
    spark: SparkSession, hdfs: str, log_dir: Path, tmp_path: Path
) -> None:
    put(spark, log_dir, f"{hdfs}/logs")
    reports = [
        audit(spark, AuditOptions(log_dirs=(place,), out=str(tmp_path / str(number)), as_of_ms=NOW))
        for number, place in enumerate((str(log_dir), f"{hdfs}/logs"))
    ]
    local, remote = reports
    assert len(local.findings) > 20
    assert told(remote, f"{hdfs}/logs") == told(local, str(log_dir))
    assert remote.sizes == local.sizes
    assert remote.states == local.states
    assert (remote.run.groups, remote.run.offsets) == (local.run.groups, local.run.offsets)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3a://bucket/logs", "S3AFileSystem not found"),
        ("hdfs://127.0.0.1:1/logs", "Connection refused"),
        ("what://is/this", 'No FileSystem for scheme "what"'),
    ],
)
def test_a_file_system_that_cannot_be_read(spark: SparkSession, tmp_path: Path, url: str, says: str) -> None:
    with pytest.raises(AuditError) as raised:
        audit(spark, AuditOptions(log_dirs=(url,), out=str(tmp_path), as_of_ms=NOW))
    assert str(raised.value).startswith(url)
    assert says in str(raised.value)


@pytest.mark.slow
def test_the_command_audits_hdfs(spark: SparkSession, hdfs: str, tmp_path: Path) -> None:
    healthy(Log(tmp_path / "log", 3))
    put(spark, tmp_path / "log", f"{hdfs}/healthy")
    command = [
        *groupkeeper(),
        "audit",
        "--out",
        str(tmp_path / "out"),
        "--partitions",
        "50",
        "--as-of",
        AS_OF,
    ]
    done = subprocess.run(
        [*command, "--log-dirs", f"{hdfs}/healthy"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["findings"], summary["partitions"]) == ([], 1)
    assert summary["records"] > 0
    refused = subprocess.run(
        [*command, "--log-dirs", f"{hdfs}/nothing"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        f"groupkeeper: {hdfs}/nothing: no directory __consumer_offsets-<partition> is in it"
    )
