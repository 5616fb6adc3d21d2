# SPDX-License-Identifier: Apache-2.0
"""What holds the project together: import rules and locked dependencies."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("audit", "coordinator", "protocol", "storage")
LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-dev.lock", "requirements-audit.lock")


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return run(sys.executable, "-c", code, "--no-cache", cwd=tree, PYTHONPATH=str(tree), COLUMNS="300")


@pytest.mark.process
def test_the_import_rules_hold() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


PLANTED = (
    ({"protocol/errors.py": "import storage.errors"}, "Packages import downwards only"),
    ({"storage/errors.py": "import coordinator.version"}, "Packages import downwards only"),
    ({"coordinator/groups/classic/state.py": "import time"}, "Groups do no I/O"),
    (
        {
            "coordinator/groups/classic/state.py": "import coordinator.version",
            "coordinator/version.py": "import random",
        },
        "Groups do no I/O",
    ),
    (
        {"coordinator/groups/classic/state.py": "import coordinator.runtime"},
        "Groups know nothing of what runs them",
    ),
    (
        {"coordinator/partitions/shard.py": "import coordinator.api.context"},
        "The rooms of the coordinator import downwards only",
    ),
    (
        {"coordinator/api/heartbeat.py": "from coordinator.partitions.shard import Shard"},
        "An api gets at groups through GroupAccess alone",
    ),
    (
        {"coordinator/partitions/leadership.py": "from storage.log_manager import LogManager"},
        "What stands above the log port does not know which log it has",
    ),
    (
        {"coordinator/partitions/append_errors.py": "import coordinator.logs.files.file_log"},
        "What stands above the log port does not know which log it has",
    ),
    (
        {"coordinator/cluster_requests/retrying.py": "import asyncio"},
        "Requests to a cluster are data",
    ),
    (
        {"coordinator/app.py": "from storage.log_manager import LogManager"},
        "A node is given its log",
    ),
    (
        {"coordinator/jobs/expiry_task.py": "import coordinator.logs.files.upkeep"},
        "A node is given its log",
    ),
    (
        {"storage/partition/segment.py": "import storage.journal.pending_segment_batches"},
        "The rooms of the storage import downwards only",
    ),
    (
        {"audit/facts/state.py": "import audit.run.reading"},
        "The rooms of the audit import downwards only",
    ),
    (
        {"audit/facts/fact_tables.py": "import threading"},
        "The audit has threads only where it is run",
    ),
    ({"protocol/framing.py": "import socket"}, "The protocol touches no files"),
    ({"protocol/headers.py": "import os"}, "The protocol touches no files"),
    ({"protocol/codegen/schema.py": "from pathlib import Path"}, "The protocol touches no files"),
    ({"storage/errors.py": "import asyncio"}, "Storage knows no event loop"),
    (
        {"coordinator/upstream/lag.py": "import coordinator.groups.config"},
        "The upstream cluster is asked as by any client",
    ),
    ({"coordinator/migration/ledger.py": "import time"}, "What changed, and in which order a group moves"),
    ({"coordinator/upstream/address_probe.py": "import aiokafka"}, "aiokafka is imported in one place"),
    (
        {"coordinator/gateway/address_book.py": "import coordinator.partitions.group_access"},
        "The gateway knows of groups only how their apis are spoken",
    ),
    ({"coordinator/gateway/pipelines.py": "import asyncio"}, "What a gateway does with bytes is decided"),
    (
        {"coordinator/gateway/session.py": "import coordinator.gateway.relay"},
        "What a gateway does with bytes is decided",
    ),
    (
        {"coordinator/logs/files/disk_jobs.py": "import storage.columns.batch_finder"},
        "The node runs without Spark",
    ),
    ({"coordinator/workers/assignment.py": "import random"}, "Who leads what is decided without I/O"),
)
"""Lines at the end of files, and how the name of the rule begins that they break."""


def test_every_import_rule_is_broken_once() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    names = [contract["name"] for contract in contracts]
    assert [name for name in names if not any(name.startswith(rule) for _, rule in PLANTED)] == []


@pytest.mark.process
@pytest.mark.parametrize(("added", "rule"), PLANTED)
def test_an_import_that_breaks_a_rule_is_found(tmp_path: Path, added: dict[str, str], rule: str) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, line in added.items():
        with (tmp_path / file).open("a") as source:
            source.write(f"\n{line}\n")
    result = lint_imports(tmp_path)
    broken = [line for line in result.stdout.splitlines() if line.startswith(rule) and " BROKEN" in line]
    assert broken, result.stdout + result.stderr


def test_every_source_file_names_the_licence() -> None:
    sources = [file for folder in (*PACKAGES, "tests", "bench") for file in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 20
    unnamed = [
        str(file.relative_to(ROOT))
        for file in sources
        if not file.read_text().startswith("# SPDX-License-Identifier: Apache-2.0\n")
    ]
    assert unnamed == []


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    audit = project["project"]["optional-dependencies"]["audit"]
    for lock, wanted in zip(
        LOCKS, (project["project"]["dependencies"], groups["build"], groups["dev"], audit), strict=True
    ):
        names = {re.split(r"[<>=,;\[ ]", text)[0] for text in wanted if isinstance(text, str)}
        assert names <= pins(lock).keys(), f"run: make lock ({lock} lacks {names - pins(lock).keys()})"


def test_the_locks_agree_on_every_version() -> None:
    everything = pins("requirements-dev.lock") | pins("requirements-audit.lock")
    for lock in LOCKS:
        assert pins(lock).items() <= everything.items(), f"run: make lock ({lock} and another one differ)"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_a_hash_for_each_pin_and_no_addresses(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--index" not in text
    for entry in re.split(r"\n(?=[a-z0-9])", text):
        assert "--hash=sha256:" in entry, entry.splitlines()[0]
