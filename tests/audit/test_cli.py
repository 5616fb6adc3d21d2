# SPDX-License-Identifier: Apache-2.0
"""The command: exit codes, what it says where it cannot run, and its reports."""

import os
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from audit import cli
from audit.checks import FINDING_COLUMNS, all_checks
from audit.options import AuditOptions, Severity
from audit.report.model import is_at_least_as_severe
from audit.run.audit import audit
from protocol.newtypes import LEDGER_PREFIX, GroupId
from protocol.placement import partition_for
from tests.audit.damaged import flipped_bit
from tests.audit.logs import AS_OF, DAY, NOW, PARTITIONS, Log, commit, healthy, member, stored
from tests.support.browser import screenshot_of

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)</script>|`*[x](javascript:y)\u202e\n"


def command(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "coordinator.cli.main", "audit", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ledger_of(partition: int) -> str:
    """The group that holds the marks of this partition's groups."""
    names = (f"{LEDGER_PREFIX}{number}" for number in count())
    return next(name for name in names if partition_for(GroupId(name), PARTITIONS) == partition)


def run(spark: SparkSession, log_dir: Path, out: Path, *more: str) -> int:
    return cli.main(
        ["--log-dirs", str(log_dir), "--out", str(out), "--as-of", AS_OF, "--partitions", "50", *more],
        session=spark,
    )


@pytest.mark.spark
@pytest.mark.process
def test_of_spark_one_line_is_left(tmp_path: Path) -> None:
    """Java's own, about a module that Spark's launcher names; a mail every night needs no more."""
    healthy(Log(tmp_path / "log", 3))
    places = ("--log-dirs", str(tmp_path / "log"), "--out", str(tmp_path / "out"))
    done = command(*places, "--as-of", AS_OF, "--partitions", "50")
    assert done.returncode == cli.EXIT_CLEAN, done.stderr
    assert done.stderr.splitlines() in ([], ["WARNING: Using incubator modules: jdk.incubator.vector"])


def test_end_groups_are_no_groups_that_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    """Those that a flag or a node's topics name; their names are not SQL."""
    declared = ("made", "it's \\ made')--")
    log = healthy(Log(tmp_path / "log", 3))
    for group in (*declared, "left-over"):
        Log(tmp_path / "log", partition_for(GroupId(group), 50)).add(commit(group, 1))
    places = ["--log-dirs", str(tmp_path / "log"), "--as-of", AS_OF, "--partitions", "50"]

    def without_group(out: Path, *flags: str, named: Sequence[str] = ()) -> str:
        arguments = [*places, "--out", str(out), "--fail-on", "info", *flags]
        cli.main(arguments, session=spark, find_end_groups=lambda _log_dirs: named)
        summary = msgspec.json.decode((out / "summary.json").read_bytes())
        found = [each for each in summary["findings"] if each["check"] == "offsets_without_group"]
        return " ".join(each["message"] for each in found)

    assert log.group not in declared
    assert all(group in without_group(tmp_path / "all") for group in ("left-over", "made"))
    told = without_group(tmp_path / "some", "--end-group", declared[0], named=declared[1:])
    assert "left-over" in told
    assert "made" not in told


@pytest.mark.gate
def test_exit_code_is_0_for_a_clean_log_and_1_for_findings_of_that_severity(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = healthy(Log(tmp_path / "log", 3))
    log.add(
        commit(ledger_of(3), 0, topic=log.group)
    )  # a gateway's mark, which is no group and no committed offset
    assert run(spark, tmp_path / "log", tmp_path / "out", "--compacted") == cli.EXIT_CLEAN
    summary = msgspec.json.decode((tmp_path / "out" / "summary.json").read_bytes())
    assert summary["findings"] == []
    assert {name: summary[name] for name in ("partitions", "records", "groups", "offsets")} == {
        "partitions": 1,
        "records": 14,
        "groups": 1,
        "offsets": 3,
    }
    assert summary["seconds"] > 0
    assert "Not stored" not in (tmp_path / "out" / "report.html").read_text()
    log.add(commit(log.group, 1))  # less than before: a warning
    flipped_bit(Log(tmp_path / "log", 4))
    assert run(spark, tmp_path / "log", tmp_path / "out") == cli.EXIT_FINDINGS
    summary = msgspec.json.decode((tmp_path / "out" / "summary.json").read_bytes())
    assert [tuple(finding) for finding in summary["findings"]] == [FINDING_COLUMNS] * 2
    assert [finding["check"] for finding in summary["findings"]] == ["batch_crc", "committed_offset_back"]
    assert summary["findings"][0]["file"].endswith("__consumer_offsets-4/00000000000000000000.log")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--log-dirs", "/nonexistent", "--out", "OUT"], "/nonexistent"),
        (["--log-dirs", "EMPTY", "--out", "OUT"], "no directory __consumer_offsets-<partition> is in it"),
        (
            ["--log-dirs", "EMPTY", "--out", "OUT", "--since", "yesterday"],
            "--since yesterday: expected a date",
        ),
        (["--log-dirs", "EMPTY", "--out", "OUT", "--limit", "x=1"], "--limit x: unknown limit"),
        (
            ["--log-dirs", "EMPTY", "--out", "OUT", "--limit", "future_ms=x"],
            "--limit future_ms=x: expected a whole number",
        ),
        (
            ["--log-dirs", "EMPTY", "--out", "OUT", "--limit", "growth_factor="],
            "--limit growth_factor=: expected a number",
        ),
        (
            ["--log-dirs", "EMPTY", "--out", "OUT", "--partitions", "0"],
            "--partitions 0: expected a whole number, 1 or more",
        ),
        (
            ["--log-dirs", "EMPTY", "--out", "OUT", "--partitions", "x"],
            "--partitions x: expected a whole number, 1 or more",
        ),
    ],
)
def test_exit_code_is_2_with_one_line_when_it_cannot_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], says: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    places = {"EMPTY": str(empty), "OUT": str(tmp_path / "out")}
    assert cli.main([places.get(argument, argument) for argument in arguments]) == cli.EXIT_FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("groupkeeper: ")
    assert says in line
    assert not (tmp_path / "out").exists()


def fails_before_java(tmp_path: Path, *arguments: str) -> str:
    """The one line that the command ends with; asserts that Java was not started for it."""
    healthy(Log(tmp_path / "log", 3))
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    java.chmod(0o755)
    done = command("--log-dirs", str(tmp_path / "log"), *arguments, JAVA_HOME=str(tmp_path / "java"))
    assert done.returncode == cli.EXIT_FAILED
    (line,) = done.stderr.splitlines()
    assert not (tmp_path / "started").exists()
    return line


@pytest.mark.process
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "no answer: Connection refused"),
        ("localhost", "expected HOST:PORT"),
        ("127.0.0.1:99999", "expected HOST:PORT"),
        ("nobody.invalid:9092", "no answer: "),
    ],
)
def test_a_cluster_that_is_not_there_is_found_before_spark_starts(
    tmp_path: Path, address: str, says: str
) -> None:
    line = fails_before_java(tmp_path, "--out", str(tmp_path / "out"), "--against", address)
    assert line.startswith(f"groupkeeper: --against {address}: {says}")
    assert not (tmp_path / "out").exists()


@pytest.mark.process
def test_what_is_no_cluster_is_found_before_spark_starts(tmp_path: Path) -> None:
    class Http(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1_000)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Http) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        line = fails_before_java(tmp_path, "--out", str(tmp_path / "out"), "--against", address)
        server.shutdown()
    assert line.endswith(
        f"--against {address}: no answer: what listens there does not speak Kafka's protocol"
    )


@pytest.mark.process
def test_a_place_that_cannot_be_written_is_found_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    line = fails_before_java(tmp_path, "--out", str(file / "out"))
    assert line == f"groupkeeper: --out {file}/out: {file} is no directory"


@pytest.mark.process
def test_without_java_the_command_says_what_to_install(tmp_path: Path) -> None:
    done = command("--log-dirs", str(tmp_path), "--out", str(tmp_path / "out"), JAVA_HOME=str(tmp_path))
    assert done.returncode == cli.EXIT_FAILED
    assert done.stderr.count("\n") == 1
    assert "needs a Java runtime, version 17 or later" in done.stderr


def test_without_spark_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("jinja2", "numpy", "pyarrow", "pyspark"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["--log-dirs", str(tmp_path), "--out", str(tmp_path)]) == cli.EXIT_FAILED
    said = capsys.readouterr().err
    assert "the audit needs jinja2, numpy, pyarrow, pyspark: " in said
    assert "`make install-audit`" in said
    assert "`docker build --target audit .`" in said
    assert "pip install" not in said  # it is on no index


@pytest.mark.process
def test_the_commands_help_needs_no_spark() -> None:
    code = "import sys; sys.argv[1:] = ['audit', '--help']\nfrom coordinator.cli.main import main\n"
    code += "try: main()\nfinally: assert not {'pyspark', 'pyarrow', 'numpy'} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--fail-on" in done.stdout


@pytest.mark.parametrize(
    ("worst", "fail_on", "fails"),
    [
        (None, "info", False),
        ("info", "info", True),
        ("info", "warning", False),
        ("warning", "warning", True),
        ("warning", "error", False),
        ("error", "info", True),
        ("error", "error", True),
    ],
)
def test_what_is_at_least_as_grave_fails(worst: Severity | None, fail_on: Severity, fails: bool) -> None:
    assert is_at_least_as_severe(worst, fail_on) is fails


# ------------------------------------------------------------------ reports


class Page(HTMLParser):
    """What is in a page, and whether every element is closed."""

    void = frozenset({"meta", "br", "link", "img", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of an audit of groups whose names are markup."""
    work = tmp_path_factory.mktemp("hostile")
    log = Log(work / "log", 0)
    log.group = HOSTILE
    healthy(log).add(commit(HOSTILE, 1, topic=HOSTILE, metadata=HOSTILE))
    log.add(commit(HOSTILE, 0, topic=HOSTILE)).add(stored(HOSTILE, 2, [member(HOSTILE)]))
    options = AuditOptions(
        log_dirs=(str(work / "log"),), out=str(work / "out"), as_of_ms=NOW, num_partitions=50
    )
    audit(spark, options)
    return work / "out"


def test_the_page_is_whole_and_shows_names_as_they_are(hostile: Path) -> None:
    page = Page((hostile / "report.html").read_text())
    assert not page.tags & {"script", "iframe", "object", "link", "img"}
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "href")}
    assert "<script>alert(1)</script>" in page.words
    assert page.tags >= {"svg", "rect", "table", "dl"}


def test_the_markdown_shows_names_as_they_are(hostile: Path) -> None:
    text = (hostile / "summary.md").read_text()
    assert "<script>" not in text
    assert r"\<script\>alert\(1\)\</script\>" in text
    assert "\u202e" not in text


def test_prometheus_reads_its_text_and_sees_every_check(hostile: Path) -> None:
    text = (hostile / "groupkeeper_audit.prom").read_text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    found = {
        sample.labels["check"]: sample.value for sample in families["groupkeeper_audit_findings"].samples
    }
    assert found.keys() == {check.name for check in all_checks()}
    assert found["committed_offset_back"] == 1
    assert families["groupkeeper_audit_timestamp_seconds"].samples[0].value == NOW / 1000


@pytest.mark.gate
def test_a_browser_shows_the_page(hostile: Path, tmp_path: Path) -> None:
    for width in (1100, 390):
        picture = screenshot_of(hostile / "report.html", tmp_path / f"{width}.png", width)
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 20_000  # an empty page of that size has 5,000


def test_the_next_audit_sees_what_is_lost_and_how_the_log_has_grown(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = healthy(Log(tmp_path / "log", 3))
    whole = log.file.read_bytes()
    first = AuditOptions(
        log_dirs=(str(tmp_path / "log"),), out=str(tmp_path / "out"), as_of_ms=NOW, num_partitions=50
    )
    assert audit(spark, first).findings == []
    log.file.write_bytes(whole[:-80])  # the last commit, and with it offset 100, is gone
    Log(tmp_path / "log", 4).file.write_bytes(b"")
    limits = msgspec.structs.replace(first.limits, growth_bytes=-(1 << 30), growth_factor=0.5)
    second = msgspec.structs.replace(first, as_of_ms=NOW + DAY // 2, limits=limits)
    report = audit(spark, second)
    found = {finding.check: finding.message for finding in report.findings}
    assert found.keys() == {"lost_since_last_audit", "growth"}
    assert "had 100 for topic-0" in found["lost_since_last_audit"]
    assert [run.as_of_ms for run in report.earlier] == [NOW]
