# SPDX-License-Identifier: Apache-2.0
"""What runs the audit every night: systemd takes the units, and the command takes their flags."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from string import Template

from audit.cli import parser
from bench.installed import ROOT
from tests.support.missing import skip_or_fail

UNITS = ROOT / "deploy" / "systemd"
CRON_JOB = ROOT / "deploy" / "kubernetes" / "audit-cronjob.yaml"


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


def test_the_command_takes_the_flags_of_the_unit() -> None:
    lines = (UNITS / "groupkeeper-audit.service").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line.startswith(("Environment=", "ExecStart=")))
    environment = dict(pair.split("=", 1) for pair in shlex.split(given["Environment"]))
    _, name, *flags = shlex.split(Template(given["ExecStart"]).substitute(environment))
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
