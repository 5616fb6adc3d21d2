# SPDX-License-Identifier: Apache-2.0
"""What `groupkeeper audit` finds out for the audit: the end groups of a node's topics; and its help."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from audit.cli import parser
from coordinator.cli.audit import find_end_groups
from coordinator.cli.help import EXAMPLES
from tests.support.command import groupkeeper
from tests.support.service import serving


@pytest.mark.process
@pytest.mark.slow
def test_the_end_groups_are_those_of_the_nodes_topics(tmp_path: Path) -> None:
    with serving(tmp_path / "node") as service:
        for name, end_group in (("work", "made"), ("more", "made-too"), ("plain", None)):
            config = ("--config", f"groupkeeper.end.group={end_group}") if end_group else ()
            create = ("topics", "create", name, "--partitions", "2", *config)
            done = groupkeeper(*create, "--bootstrap", service.bootstrap)
            assert done.returncode == 0, done.stderr
        done = groupkeeper("topics", "delete", "more", "--execute", "--bootstrap", service.bootstrap)
        assert done.returncode == 0, done.stderr
        assert list(find_end_groups([str(service.data_dir), str(tmp_path / "elsewhere")])) == ["made"]


def test_a_brokers_directory_names_none(tmp_path: Path) -> None:
    assert list(find_end_groups([str(tmp_path), "hdfs://host/logs"])) == []


def test_a_damaged_catalogue_is_reported_and_stops_no_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "catalogue.json").write_text("{")
    assert list(find_end_groups([str(tmp_path)])) == []
    assert "the end groups of topics are not known" in capsys.readouterr().err
    (tmp_path / "catalogue.json").unlink()
    (tmp_path / "catalogue.json").mkdir()
    assert list(find_end_groups([str(tmp_path)])) == []
    assert "Is a directory" in capsys.readouterr().err


def test_the_audit_takes_the_options_of_its_examples() -> None:
    for example in EXAMPLES["audit"]:
        parser().parse_args(shlex.split(example)[2:])  # raises for an option that it does not know


@pytest.mark.process
def test_the_script_for_spark_tells_usage_errors_in_one_line_too() -> None:
    command = [sys.executable, "-m", "audit", "--log-dirs", "a", "--out", "b", "--bogus"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "groupkeeper: no such option: --bogus (see audit --help)\n"
