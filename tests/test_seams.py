# SPDX-License-Identifier: Apache-2.0
"""What a node is made of is given to it; by the machine in product code, and by arguments and fakes in tests."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.patches import finds
from tests.support.seams import uses

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("coordinator", "protocol", "storage")
"""Not the audit: it is a job of Spark's processes, and no simulation has it."""

MACHINE: Final = {
    "coordinator/host_resources.py": "names the real ones",
    "coordinator/runtime/clock.py": "the system's clocks",
    "coordinator/runtime/io_thread.py": "the real thread",
    "coordinator/runtime/sockets.py": "the socket that listens",
    "coordinator/runtime/stop_signals.py": "the signals of a process that is a node, or a supervisor",
    "coordinator/upstream/address_probe.py": "a connection to what is no broker, to see what it is",
    "coordinator/telemetry/log_writer.py": "the thread that writes log lines: one for each process",
    "coordinator/telemetry/logs.py": "the clock of its rate limit: one for each process",
    "coordinator/workers/operator_socket.py": "the socket for operators, of a supervisor that has a process",
    "coordinator/workers/loop_heartbeat.py": "the thread that answers pings, of a worker that has a process",
    "coordinator/workers/subprocesses.py": "the real launcher",
    "coordinator/workers/process_main.py": "the process of a worker or gateway",
    "coordinator/config/sources.py": "settings are read before there is a node",
    "coordinator/importer": "copies a stopped broker's directories, for a command",
    "coordinator/cli": "commands are processes of their own",
    "protocol/codegen": "writes our sources",
    "storage/disk/filesystem.py": "the real files",
    "storage/cleaner/__main__.py": "the process that compacts",
    "storage/cleaner/child.py": "starts it",
}
"""The modules that are the machine, or stand before a node, each with what it has of it."""


def is_machine(path: Path) -> bool:
    return any(str(each) in MACHINE for each in (path, *path.parents))


def test_nothing_goes_round_the_machine() -> None:
    found = [
        f"{path}:{use.line}: {use.name}"
        for package in PACKAGES
        for path in sorted(file.relative_to(ROOT) for file in (ROOT / package).rglob("*.py"))
        if not is_machine(path)
        for use in uses((ROOT / path).read_text())
    ]
    assert found == [], "take it from the Machine, the Clock or the FileSystem that a node is given"


def test_each_module_of_the_machine_is_there_and_is_one() -> None:
    for name in MACHINE:
        path = ROOT / name
        files = [path] if path.suffix else list(path.rglob("*.py"))
        assert any(uses(file.read_text()) for file in files), f"{name} needs no place in the list"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time\nat = time.monotonic()", "time.monotonic"),
        ("import time as t\nat = t.time_ns()", "time.time_ns"),
        ("from time import perf_counter_ns\nat = perf_counter_ns()", "time.perf_counter_ns"),
        ("from time import sleep as pause\nwait = pause", "time.sleep"),
        ("from datetime import datetime\nat = datetime.now()", "datetime.datetime.now"),
        ("import os\nsalt = os.urandom(8)", "os.urandom"),
        ("import random\nrng = random.Random()", "random.Random"),
        ("from uuid import uuid4\ndef new(make=uuid4): ...", "uuid.uuid4"),
        ("import socket\nsock = socket.socket()", "socket.socket"),
        ("import asyncio\nasync def f():\n await asyncio.open_connection('h', 1)", "asyncio.open_connection"),
        ("from threading import Thread\nThread(target=print).start()", "threading.Thread"),
        ("import concurrent.futures\nx = concurrent.futures.ThreadPoolExecutor(1)", "concurrent.futures"),
        ("def f():\n import subprocess\n subprocess.run([])", "subprocess.run"),
        ("import os\nos.kill(1, 9)", "os.kill"),
        ("from storage.disk.filesystem import RealFileSystem\nfs = RealFileSystem()", "RealFileSystem"),
        ("with open('f') as file: ...", "open"),
        ("def f(path):\n return path.read_text()", ".read_text"),
        ("def f(path):\n return path.parent.joinpath('x').unlink()", ".unlink"),
    ],
)
def test_whatever_goes_round_it_is_found(source: str, name: str) -> None:
    assert [use for use in uses(source) if name in use.name], source


@pytest.mark.parametrize(
    "source",
    [
        "import socket\ndef f(sock: socket.socket) -> socket.socket:\n return sock",
        "from datetime import UTC, datetime\nat = datetime.fromtimestamp(0, UTC)",
        "from uuid import UUID\nname = UUID(bytes=bytes(16))",
        "from threading import Lock\nlock = Lock()",
        "def f(fs, path):\n return fs.open(path).pread(1, 0), fs.exists(path)",
        "def f(clock):\n return clock.nanos(), clock.time",
        "class A:\n open: int",
    ],
)
def test_what_is_given_may_be_used(source: str) -> None:
    assert uses(source) == []


# --- tests ---

ALLOWED: Final = {
    "tests/protocol/golden/messages.py": "field._name",  # of kafka-python, which has no public one
}


def test_no_test_changes_a_module_or_looks_into_asyncio() -> None:
    found = [
        f"{path}:{find.line}: {find.what}"
        for path in sorted(file.relative_to(ROOT) for file in (ROOT / "tests").rglob("*.py"))
        for find in finds((ROOT / path).read_text())
        if not find.what.endswith(f": {ALLOWED.get(str(path))}")
    ]
    assert found == [], (
        "give the part what the test needs: an argument, a public attribute, a fake of its protocol"
    )


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def test(monkeypatch):\n monkeypatch.setattr(module, 'LIMIT', 1)", "a patch"),
        ("def test(monkeypatch):\n monkeypatch.setattr('coordinator.app.serve', None)", "a patch"),
        ("def test(monkeypatch):\n monkeypatch.delattr(os, 'fsync')", "a patch"),
        ("with pytest.MonkeyPatch.context() as patch:\n patch.setattr(a, 'b', 1)", "a patch"),
        ("from unittest.mock import patch", "unittest.mock"),
        ("import unittest.mock as mock", "unittest.mock"),
        ("from coordinator.net import connection\nconnection.LINGER_S = 0", "a module is changed"),
        ("import os\nos.fsync = print", "a module is changed"),
        ("import time\nsetattr(time, 'monotonic', print)", "a module is changed"),
        ("data = stream._buffer", "a private attribute"),
        ("client._reader._transport.pause_reading()", "a private attribute"),
        ("loop._ready.clear()", "a private attribute"),
        ("from coordinator.app import App\napp = cast(App, fake)", "a cast"),
        ("from coordinator.app import App\napp = cast('App | None', fake)", "a cast"),
    ],
)
def test_a_test_that_does_is_found(source: str, what: str) -> None:
    assert [find for find in finds(source) if what in find.what], source


@pytest.mark.parametrize(
    "source",
    [
        "def test(monkeypatch, tmp_path):\n monkeypatch.chdir(tmp_path)\n monkeypatch.setenv('A', 'b')",
        "import sys\ndef test(monkeypatch):\n monkeypatch.setitem(sys.modules, 'numpy', None)",
        "class Own:\n def get(self):\n  return self._buffer",
        "edge.server.linger_s = 0.0",
        "protocol = cast(asyncio.Protocol, made)",
        "from coordinator.stats import Stats\nStats().requests = 1",
    ],
)
def test_what_is_a_tests_own_may_be_changed(source: str) -> None:
    assert finds(source) == []
