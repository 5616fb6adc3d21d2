# SPDX-License-Identifier: Apache-2.0
"""What starts the server and, every night, the audit: systemd takes the units, the command their flags."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from string import Template
from urllib.request import urlopen

import pytest

from audit.cli import parser
from bench.installed import ROOT, groupkeeper
from bench.ports import free_ports
from coordinator.config import Settings
from tests.support.missing import skip_or_fail
from tests.support.pages import commands
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

PAGE = (ROOT / "docs" / "installing.md").read_text()
UNITS = ROOT / "deploy" / "systemd"
CRON_JOB = ROOT / "deploy" / "kubernetes" / "audit-cronjob.yaml"


@pytest.mark.process
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        skip_or_fail("systemd-analyze is not on the PATH")
    command = tmp_path / "groupkeeper"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/opt/groupkeeper/.venv/bin/groupkeeper", str(command))
        (tmp_path / unit.name).write_text(text)
    units = [str(tmp_path / unit.name) for unit in UNITS.iterdir()]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_page_installs_what_the_unit_starts() -> None:
    """User, directories and names in the commands of docs/installing.md are those of the unit."""
    unit = {key: values[0] for key, values in lines_of(UNITS / "groupkeeper.service").items()}
    user, clone, copy, enable = (
        shlex.split(next(each for each in commands(PAGE) if each.startswith(program)))
        for program in ("useradd", "git clone", "cp", "systemctl")
    )
    assert user[-1] == unit["User"] == unit["Group"]
    assert user[user.index("--home-dir") + 1] == f"/var/lib/{unit['StateDirectory']}"
    tree = Path(clone[3])
    assert clone[4:] == ["&&", "make", "-C", str(tree), "install"]
    assert shlex.split(unit["ExecStart"])[0] == str(tree / ".venv/bin/groupkeeper")
    source = ROOT / Path(copy[1]).relative_to(tree)
    assert (source, copy[2]) == (UNITS / "groupkeeper.service", "/etc/systemd/system/")
    assert f"{enable[-1]}.service" == source.name


@pytest.mark.process
def test_the_server_can_do_little_beside_its_work() -> None:
    """Systemd's own measure of what a process could do, 0 to 10; from 2.0 on (as a tenth here) it fails."""
    if shutil.which("systemd-analyze") is None:
        skip_or_fail("systemd-analyze is not on the PATH")
    unit = str(UNITS / "groupkeeper.service")
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
def test_the_server_runs_as_its_unit_starts_it(tmp_path: Path) -> None:
    """Its command line and environment file, with other places; a clean stop is an exit status of 0."""
    given = lines_of(UNITS / "groupkeeper.service")
    port, metrics_port = free_ports(2)
    environment = {
        "GROUPKEEPER_LISTEN": f"127.0.0.1:{port}",
        "GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{metrics_port}",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
    }
    binary, *arguments = shlex.split(
        given["ExecStart"][0].replace("/var/lib/groupkeeper", str(tmp_path / "data"))
    )
    assert binary == "/opt/groupkeeper/.venv/bin/groupkeeper"
    assert given["StateDirectory"] == ["groupkeeper"]
    server = ServerProcess([*groupkeeper(), *arguments], tmp_path / "log", env=environment)
    try:
        wait_until(lambda: ready(metrics_port), what=lambda: f"the server to be ready:\n{server.log_tail()}")
    finally:
        assert server.terminate() == 0
    longest_stop_s = Settings().shutdown_timeout_ms / 1000
    assert int(given["TimeoutStopSec"][0]) > longest_stop_s


def ready(metrics_port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{metrics_port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def lines_of(unit: Path) -> dict[str, list[str]]:
    """The values of each key of a unit, in order."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def test_the_command_takes_the_flags_of_the_unit() -> None:
    given = lines_of(UNITS / "groupkeeper-audit.service")
    ((pairs,), (command,)) = given["Environment"], given["ExecStart"]
    environment = dict(pair.split("=", 1) for pair in shlex.split(pairs))
    _, name, *flags = shlex.split(Template(command).substitute(environment))
    taken = parser("groupkeeper audit").parse_args(flags)
    assert (name, taken.log_dirs, taken.out) == (
        "audit",
        "/var/lib/groupkeeper",
        "/var/lib/groupkeeper-audit",
    )
    assert taken.against == "127.0.0.1:9092"


def test_the_command_takes_the_flags_of_the_cron_job() -> None:
    text = CRON_JOB.read_text()
    found = re.search(r"^ +args: (\[.*\])$", text, re.MULTILINE)
    assert found is not None
    name, *flags = json.loads(found.group(1))
    taken = parser("groupkeeper audit").parse_args(flags)
    mounts = set(re.findall(r"mountPath: (/\w+)", text))
    assert name == "audit"
    assert {taken.log_dirs, taken.out} < mounts
