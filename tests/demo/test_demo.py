# SPDX-License-Identifier: Apache-2.0
"""`make demo` fails when an offset is lost, and leaves nothing behind; tests/packaging reads the whole story."""

import re
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # kafka-python uses a deprecated function while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from bench.demo.group import Broken, Group
    from bench.demo.screen import Screen
    from bench.demo.story import SERVICE_SETTINGS, play, require_kept
    from bench.servers import Groupkeeper

from tests.demo.told import PROCESSES, pids, row, runs
from tests.support.missing import skip_or_fail
from tests.support.processes import REPOSITORY, environment
from tests.support.waiting import wait_until

COMMAND = (sys.executable, "-m", "bench.demo")
CRASHES = 10


class Forgetful(Groupkeeper):
    """A service that keeps nothing across its death."""

    def kill(self) -> None:
        """Die, and lose all data."""
        super().kill()
        self.reset()


@pytest.mark.slow
def test_a_service_that_forgets_fails_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forgetful = Forgetful("groupkeeper", tmp_path / "service", SERVICE_SETTINGS)
    assert play(tmp_path, forgetful, Screen()) == 1
    told, errors = capsys.readouterr()
    assert row(told, "found again") == ["-"] * 12
    assert "are there" not in told
    assert "The demo failed: 12 of 12 committed offsets are wrong" in errors
    assert not any(runs(pid) for pid in pids(told))


@pytest.mark.slow
def test_the_client_that_asks_is_answered_after_every_crash(tmp_path: Path) -> None:
    with Groupkeeper("groupkeeper", tmp_path / "service", SERVICE_SETTINGS) as service:
        service.start()
        group = Group(str(service.address), "billing", "orders")
        group.create_topic(1)
        for _ in range(CRASHES):
            assert group.committed() == {}  # now it is connected to the coordinator, and knows it as such
            service.kill()
            service.start()
        assert group.committed() == {}


@pytest.mark.process
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_demo_that_is_stopped_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    if how == signal.SIGKILL and shutil.which("setpriv") is None:
        skip_or_fail(
            "setpriv (Linux) is not here: only it ends the service when the demo itself gets SIGKILL"
        )
    with subprocess.Popen(
        COMMAND, cwd=REPOSITORY, env=demo_environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        started: list[int] = []
        while len(started) < PROCESSES:
            line = demo.stdout.readline()
            assert line, f"the demo ended with {demo.wait()} before all its processes had started"
            started += pids(line)
        assert all(runs(pid) for pid in started)
        demo.send_signal(how)
        status = demo.wait()
    wait_until(lambda: not any(runs(pid) for pid in started), what=f"the processes {started} to end")
    if how != signal.SIGKILL:
        assert status == 128 + how
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("found", "right"),
    [
        ({0: 10, 1: 20}, True),
        ({0: 12, 1: 20}, True),  # the commit that was under way
        ({0: 9, 1: 20}, False),
        ({0: 13, 1: 20}, False),
        ({1: 20}, False),
    ],
)
def test_an_offset_must_be_the_one_acknowledged_or_the_one_under_way(
    found: dict[int, int], right: bool
) -> None:
    acknowledged, sent = {0: 10, 1: 20}, {0: 12, 1: 20}
    if right:
        require_kept(acknowledged, found, sent)
    else:
        with pytest.raises(Broken, match=r"^1 of 2 committed offsets are wrong: partition 0: 10 was acknow"):
            require_kept(acknowledged, found, sent)


def test_the_demo_installs_the_client_that_the_tests_use() -> None:
    pin = re.compile(r"^confluent-kafka==\S+(?: \\\n    --hash=sha256:\w+)+$", re.MULTILINE)
    demo, everything = (
        (REPOSITORY / f"requirements-{lock}.lock").read_text().strip() for lock in ("demo", "dev")
    )
    assert pin.findall(demo) == pin.findall(everything) != [], "run: make lock"
    assert demo.count("==") == 1
    assert "://" not in demo


def demo_environment(temporary: Path) -> dict[str, str]:
    """No terminal, no colours, and a place of our own for what the demo must remove."""
    return environment({"TMPDIR": str(temporary), "PYTHONIOENCODING": "utf-8"})
