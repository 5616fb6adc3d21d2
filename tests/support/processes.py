# SPDX-License-Identifier: Apache-2.0
"""Child processes of the tests: one log file each, ended by their own pid, never outliving the test run."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def tied_to_us(command: Sequence[str]) -> list[str]:
    """Return `command` so that the kernel kills it when the test run dies, where setpriv (Linux) can arrange that."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else list(command)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment with the repository importable, and `extra` on top.

    Without Groupkeeper's own variables: a service under test takes its settings from the test alone.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GROUPKEEPER_")}
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    return {**ours, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **(extra or {})}


class ServerProcess:
    """A server as a child process, whose output is appended to a log file."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path = REPOSITORY,
    ) -> None:
        """Start `command`; its standard output and error go to `log`. Its environment is ours, or `env` and no more."""
        self.log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                tied_to_us(command),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd=cwd,
                env=environment() if env is None else env,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """The exit status, None while it runs; -N when signal N ended it."""
        return self._process.poll()

    def reads_and_writes(self) -> int:
        """How many calls that read or write it has made: how far it has come, however slow the machine is."""
        try:
            lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended
            return 0
        counts = dict(line.split(": ") for line in lines)
        return int(counts["syscr"]) + int(counts["syscw"])

    def assert_running(self) -> None:
        """Raise AssertionError with the end of the log when the process has ended."""
        status = self.exit_status
        assert status is None, f"the server ended with status {status}:\n{self.log_tail()}"

    def log_tail(self, lines: int = 40) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def send(self, number: signal.Signals) -> None:
        """Send a signal to its own pid."""
        self._process.send_signal(number)

    def kill9(self) -> None:
        """End it with SIGKILL, as a crash would, and wait until it is gone."""
        if self.exit_status is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(120)

    def terminate(self, timeout_s: float = 120.0) -> int:
        """Ask it to stop with SIGTERM and return its exit status; SIGKILL after `timeout_s` fails the test."""
        if self.exit_status is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as too_slow:
            self.kill9()
            raise AssertionError(
                f"no stop within {timeout_s:g} s of SIGTERM:\n{self.log_tail()}"
            ) from too_slow
