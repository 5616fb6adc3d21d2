# SPDX-License-Identifier: Apache-2.0
"""deploy/which-python: which of a machine's interpreters Groupkeeper is installed with."""

import os
import subprocess
from pathlib import Path

import pytest

from bench.installed import ROOT

pytestmark = pytest.mark.process


def chosen(path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path}
    script = ROOT / "deploy" / "which-python"
    return subprocess.run(
        ["/bin/sh", str(script)], env=environment, capture_output=True, text=True, check=False
    )


def interpreter(directory: Path, name: str, answer: str) -> None:
    """Something that answers the script's question without being a Python."""
    path = directory / name
    path.write_text(f"#!/bin/sh\nwhile read -r line; do :; done\n{answer}\n")
    path.chmod(0o755)


def test_here_it_finds_one_that_can_be_used() -> None:
    found = chosen(os.environ["PATH"])
    assert (found.returncode, found.stderr) == (0, "")
    asked = "import ensurepip, sys, venv; assert sys.version_info >= (3, 11)"
    subprocess.run([found.stdout.strip(), "-c", asked], check=True)


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        ({"python3": "echo 0", "python3.13": "echo 0"}, "python3"),  # of equals the first
        ({"python3": "echo 1", "python3.12": "echo 0"}, "python3.12"),  # optimised
        ({"python3": "exit 1", "python3.13": "exit 127", "python3.11": "echo 0"}, "python3.11"),
    ],
)
def test_the_best_one_is_taken(tmp_path: Path, answers: dict[str, str], name: str) -> None:
    for each, answer in answers.items():
        interpreter(tmp_path, each, answer)
    assert chosen(str(tmp_path)).stdout == f"{name}\n"


def test_an_old_one_is_not_taken(tmp_path: Path) -> None:
    """Whatever there is in /usr/bin, which the script asks by its place: it is not this one."""
    interpreter(tmp_path, "python3", "exit 1")
    found = chosen(str(tmp_path))
    assert found.stdout in ("", "/usr/bin/python3\n")
    assert found.returncode == (0 if found.stdout else 1)
