# SPDX-License-Identifier: Apache-2.0
"""Runs commands on a terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from bench.installed import groupkeeper as installed
from tests.support.processes import environment


def on_a_terminal(*arguments: str, columns: int) -> str:
    """What a command shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    given = environment({"TERM": "xterm"})
    for name in ("COLUMNS", "LINES"):  # which count for more than the terminal
        given.pop(name, None)
    with subprocess.Popen([*installed(), *arguments], stdout=theirs, stderr=theirs, env=given) as running:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the end of a terminal
            pass
        os.close(ours)
        assert running.wait(120) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
