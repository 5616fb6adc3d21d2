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
from coordinator.config import Settings, load
from tests.support.documented import Documented
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
    files = [unit for unit in UNITS.iterdir() if unit.suffix != ".env"]
    for unit in files:
        text = unit.read_text().replace("/opt/groupkeeper/.venv/bin/groupkeeper", str(command))
        (tmp_path / unit.name).write_text(text)
    units = [str(tmp_path / unit.name) for unit in files]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_page_installs_what_the_unit_starts() -> None:
    """User, directories and names in the commands of docs/installing.md are those of the unit."""
    unit = {key: values[0] for key, values in lines_of(UNITS / "groupkeeper.service").items()}
    user, clone, place, copy, enable = (
        shlex.split(next(each for each in commands(PAGE) if each.startswith(program)))
        for program in ("useradd", "git clone", "install", "cp", "systemctl")
    )
    assert user[-1] == unit["User"] == unit["Group"]
    assert user[user.index("--home-dir") + 1] == f"/var/lib/{unit['StateDirectory']}"
    tree = Path(clone[3])
    assert clone[4:] == ["&&", "make", "-C", str(tree), "install"]
    assert shlex.split(unit["ExecStart"])[0] == str(tree / ".venv/bin/groupkeeper")
    source = ROOT / Path(copy[1]).relative_to(tree)
    assert (source, copy[2]) == (UNITS / "groupkeeper.service", "/etc/systemd/system/")
    assert f"{enable[-1]}.service" == source.name
    example = ROOT / Path(place[-2]).relative_to(tree)
    assert (example, unit["EnvironmentFile"]) == (UNITS / "groupkeeper.env", f"-{place[-1]}")


def test_the_page_installs_the_file_of_settings(documented: Documented, tmp_path: Path) -> None:
    """With the directory that it is in, which nothing else makes; only the service's group may read it."""
    (command,) = documented.commands
    ours = f"--group {os.getgid()}"  # the group of the page exists where `useradd` was run
    documented.run(
        command, {"/opt/groupkeeper": ROOT, "/etc/groupkeeper": tmp_path / "etc", "--group groupkeeper": ours}
    )
    target = tmp_path / "etc" / "groupkeeper.env"
    assert target.read_text() == (UNITS / "groupkeeper.env").read_text()
    assert target.stat().st_mode & 0o777 == 0o640


def test_the_pages_copy_the_units(documented: Documented, tmp_path: Path) -> None:
    for command in documented.commands:
        documented.run(command, {"/opt/groupkeeper": ROOT, "/etc/systemd/system/": tmp_path})
    names = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert names == {path.name for path in UNITS.iterdir() if path.suffix != ".env"}


def variables_of(name: str) -> dict[str, str]:
    """The variables of an environment file: those that it sets, and those that it only shows."""
    lines = (UNITS / name).read_text().splitlines()
    shown = re.compile(r"#?(GROUPKEEPER_[A-Z_]+)=(.*)")
    return {found[1]: found[2] for line in lines if (found := shown.fullmatch(line))}


@pytest.mark.parametrize("name", ["groupkeeper.env", "gateway.env"])
def test_the_examples_name_settings_and_values_that_there_are(name: str) -> None:
    """Those that are only shown, too: together they are the settings of one node."""
    given = variables_of(name)
    assert given
    settings = load(None, given, (), {})
    assert settings.is_gateway == (name == "gateway.env")


@pytest.mark.parametrize("name", ["groupkeeper.env", "gateway.env"])
def test_the_examples_can_be_used_as_they_are(name: str) -> None:
    lines = [line for line in (UNITS / name).read_text().splitlines() if line and not line.startswith("#")]
    settings = load(None, dict(line.split("=", 1) for line in lines), (), {})
    assert settings.upstream_sasl_mechanism is None
    assert settings.listen.is_wildcard == settings.is_gateway, (
        "without a login, only this machine may connect"
    )


def test_the_page_installs_the_units_of_the_audit() -> None:
    install, copy, enable = (
        shlex.split(each)
        for each in commands((ROOT / "docs" / "audit.md").read_text())
        if each.startswith(("make -C", "cp", "systemctl"))
    )
    tree = Path(install[2])
    assert install == ["make", "-C", "/opt/groupkeeper", "install-audit"]
    copied = [ROOT / Path(each).relative_to(tree) for each in copy[1:-1]]
    assert copied == [UNITS / "groupkeeper-audit.service", UNITS / "groupkeeper-audit.timer"]
    assert (copy[-1], UNITS / enable[-1]) == ("/etc/systemd/system/", copied[-1])


@pytest.mark.process
@pytest.mark.parametrize("name", ["groupkeeper.service", "groupkeeper-audit.service"])
def test_the_service_can_do_little_beside_its_work(name: str) -> None:
    """Systemd's own measure of what a process could do, 0 to 10; from 2.0 on (as a tenth here) it fails."""
    if shutil.which("systemd-analyze") is None:
        skip_or_fail("systemd-analyze is not on the PATH")
    unit = str(UNITS / name)
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
    _, name, *flags = shlex.split(
        Template(command).substitute(environment)
    )  # $OPTIONS is split into words there, too
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
