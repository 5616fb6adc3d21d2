# SPDX-License-Identifier: Apache-2.0
"""A quick test is one: what starts a process, binds a fixed port or sleeps is found."""

import ast
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench.ports import HOST, free_ports
from tests.tiers import NEEDED_BY_FIXTURE, NEEDS, Guard, NotQuick

ROOT: Final = Path(__file__).parent

MAY_SLEEP: Final = {
    "gateway/clients": "programs of their own",
    "incidents": "records what Prometheus sees over time, for a file that is checked in",
    "kafka/differential": "plays on servers that are processes",
    "partitions/running.py": "between two looks at a condition",
    "peers": "programs of their own",
    "simulation": "on simulated time",
    "support/waiting.py": "between two looks at a condition",
    "workers/test_in_process.py": "on simulated time",
}
"""Where a call that sleeps is no test's own waiting for luck, and why."""


def sleeps(source: str) -> Iterator[str]:
    """The functions and classes of a module that sleep, where no marker or fixture keeps them from `quick`."""
    tree = ast.parse(source)
    marked = (
        each for each in tree.body if isinstance(each, ast.Assign) and "pytestmark" in ast.unparse(each)
    )
    if any(f"mark.{need}" in ast.unparse(each) for each in marked for need in NEEDS):
        return
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if any(f"mark.{need}" in ast.unparse(each) for each in node.decorator_list for need in NEEDS):
            continue
        if (
            not isinstance(node, ast.ClassDef)
            and {each.arg for each in node.args.args} & NEEDED_BY_FIXTURE.keys()
        ):
            continue
        for call in ast.walk(node):
            is_sleep = isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "sleep"
            if isinstance(call, ast.Call) and is_sleep and ast.unparse(call.args[0]) != "0":
                yield f"{node.name}, line {call.lineno}"


def test_no_quick_test_sleeps() -> None:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT)
        if not any(str(each) in MAY_SLEEP for each in (name, *name.parents)):
            found[str(name)] = list(sleeps(path.read_text()))
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_what_sleeps_is_found() -> None:
    sleeping = "def test_x():\n    time.sleep(0.1)\n"
    waiting = "async def test_x():\n    await asyncio.sleep(0)\n"
    assert list(sleeps(sleeping)) == ["test_x, line 2"]
    assert list(sleeps(waiting)) == []
    assert list(sleeps(f"@pytest.mark.process\n{sleeping}")) == []
    assert list(sleeps(f"pytestmark = [pytest.mark.slow]\n{sleeping}")) == []
    assert list(sleeps(sleeping.replace("test_x()", "test_x(service)"))) == []


@pytest.fixture(scope="module")
def guard() -> Guard:
    """A guard beside that of the run, which is tried in tests that are not quick themselves."""
    made = Guard()
    made.install()
    return made


@pytest.mark.process
def test_a_quick_test_that_starts_a_process_is_stopped(guard: Guard) -> None:
    command = [sys.executable, "-c", ""]
    with pytest.raises(NotQuick, match=r"starts a process \(subprocess.Popen\)"), guard.guarding():
        subprocess.run(command, check=True)
    subprocess.run(command, check=True)


@pytest.mark.process
def test_a_quick_test_that_binds_a_fixed_port_is_stopped(guard: Guard) -> None:
    (port,) = free_ports(1)
    with guard.guarding(), socket.create_server((HOST, port)), socket.create_server((HOST, 0)):
        pass
    with socket.socket() as fixed, pytest.raises(NotQuick, match="binds port 9092"), guard.guarding():
        fixed.bind((HOST, 9092))


@pytest.mark.process
def test_what_a_test_has_caught_itself_is_raised_at_its_end(guard: Guard) -> None:
    def with_one_that_is_caught() -> None:
        with guard.guarding(), contextlib.suppress(NotQuick):
            subprocess.run([sys.executable, "-c", ""], check=True)

    with pytest.raises(NotQuick, match="starts a process"):
        with_one_that_is_caught()
