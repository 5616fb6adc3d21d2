# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.ports import free_ports
from bench.servers import REPOSITORY, Server
from tests.support.documented import Documented


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_scenarios_print_a_table_and_write_json(server: Server, tmp_path: Path) -> None:
    written = tmp_path / "results.json"
    done = bench(
        "commit", "heartbeat", "--bootstrap", str(server.address), "--server-pid", str(server.pid),
        "--groups", "4", "--requests", "100", "--json", str(written),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    heading, commit, heartbeat = done.stdout.splitlines()
    assert heading.split()[:2] == ["scenario", "requests/s"]
    assert (commit.split()[0], heartbeat.split()[0]) == ("commit", "heartbeat")
    document = json.loads(written.read_text())
    assert [(r["scenario"], r["errors"]) for r in document["results"]] == [("commit", 0), ("heartbeat", 0)]
    assert document["machine"].keys() >= {"date", "commit", "machine"}


@pytest.mark.process
def test_without_a_server_the_exit_status_is_3(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    done = bench("start", "--data", str(tmp_path), "--set", "no.such.setting=1")
    assert done.returncode == 3
    assert "bench: groupkeeper ended with code" in done.stderr
    assert list(tmp_path.iterdir()) == [blocked]


@pytest.mark.process
def test_where_nobody_listens_one_line_says_so_at_once() -> None:
    (port,) = free_ports(1)
    done = bench("heartbeat", "--bootstrap", f"127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"bench: no server at 127.0.0.1:{port} (Connection refused): start one")


@pytest.mark.process
@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--server", "groupkeeper"], "--server"),
        (["--set", "log.flush=os"], "--set"),
        (["--data", ".", "--server", "kafka"], "--server, --data"),
    ],
)
def test_flags_of_a_server_of_its_own_are_refused_for_one_that_runs(flags: list[str], named: str) -> None:
    done = bench("commit", "heartbeat", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"bench: {named}: only for start and restart")
    assert "commit, heartbeat" in line


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["commit", "--bootstrap", "nowhere"],
        ["commit", "--cap", "Produce=1"],
        ["compare", "--only", "nonsense"],
        ["compare", "--servers", "nonsense"],
    ],
)
def test_wrong_usage_has_exit_status_2(arguments: list[str]) -> None:
    done = bench(*arguments)
    assert done.returncode == 2
    assert "usage: python -m bench" in done.stderr


QUICKLY = "--runs 1 --duration 0.2 --warmup 0 --idle 0 --restart-groups 10"


@pytest.mark.slow
def test_compare_plays_in_turns_and_writes_the_page(documented: Documented, tmp_path: Path) -> None:
    """Beside no Kafka, which has the test below."""
    (command,) = documented.commands
    written, results = tmp_path / "runs.json", tmp_path / "RESULTS.md"
    places = {
        "kafka,": "",
        "--runs 3 --duration 3": f"{QUICKLY} --only commit,start,restart --json {written}",
        "--write": f"--write {results}",
    }
    documented.run(command, places)
    page, runs = results.read_text(), json.loads(written.read_text())["runs"]
    names = ["Groupkeeper, log.flush=os", "Groupkeeper, log.flush=always"]
    assert {scenario: list(by_server) for scenario, by_server in runs.items()} == {
        "commit": names,
        "start": names,
        "restart": names,
    }
    assert all(len(runs["commit"][name]) == len(runs["start"][name]) == 1 for name in names)
    assert "median of 1 run" in page
    assert page.count("| commit | Groupkeeper, log.flush=") == 2
    assert "## Start" in page
    assert "## Restart" in page
    assert "python -m bench compare --servers os,always" in page


@pytest.mark.kafka
@pytest.mark.slow
def test_compare_with_a_real_kafka(tmp_path: Path) -> None:
    written, results = tmp_path / "runs.json", tmp_path / "RESULTS.md"
    flags = ("--servers", "kafka,os", "--only", "commit", *QUICKLY.split())
    done = bench("compare", *flags, "--write", str(results), "--json", str(written))
    assert done.returncode == 0, done.stdout + done.stderr
    page, runs = results.read_text(), json.loads(written.read_text())["runs"]
    assert list(runs["commit"]) == ["Kafka", "Groupkeeper, log.flush=os"]
    assert "CPU of Kafka's" in page
