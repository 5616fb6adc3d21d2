# SPDX-License-Identifier: Apache-2.0
"""A consumer's process, and what it has reported so far."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bench.servers import REPOSITORY, tied_to_us

LEAVE_TIMEOUT_S: Final = 20.0
LINES_QUOTED: Final = 10


class Member:
    """A member of the group; its process reports the figures; a dict is replaced, never changed."""

    def __init__(self, name: str, bootstrap: str, group: str, topic: str, session_ms: int, log: Path) -> None:
        """Start the process; what it writes to standard error goes to `log`."""
        self.name = name
        self.assignments = 0
        self.commits = 0
        # By partition, since the last assignment: the offset it began at, and the last ones it committed.
        self.held: dict[int, int] = {}
        self.sent: dict[int, int] = {}
        self.acknowledged: dict[int, int] = {}
        self._log = log
        command = [
            sys.executable,
            "-m",
            "bench.demo.consumer",
            bootstrap,
            group,
            topic,
            name,
            str(session_ms),
        ]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                tied_to_us(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=REPOSITORY,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its processes itself
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: no goodbye to the coordinator. Afterwards all that the process reported has been read."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def freeze(self) -> None:
        """SIGSTOP: it does nothing more, and keeps all that it has."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on as if nothing had been."""
        self._process.send_signal(signal.SIGCONT)

    def leave(self) -> int:
        """Let it leave the group and end. Returns its exit status; raises subprocess.TimeoutExpired."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(LEAVE_TIMEOUT_S)

    def last_output(self) -> str:
        """The end of what it wrote to standard error."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LINES_QUOTED:])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                return  # cut off by SIGKILL
            ((what, told),) = json.loads(line).items()
            offsets = {int(partition): int(at) for partition, at in told.items()}
            if what == "assigned":
                self.held, self.sent, self.acknowledged = offsets, {}, {}
                self.assignments += 1
            elif what == "sent":
                self.sent = {**self.sent, **offsets}
            else:
                self.acknowledged = {**self.acknowledged, **offsets}
                self.commits += 1
