# SPDX-License-Identifier: Apache-2.0
"""Which ports a process is connected to, as the kernel sees it."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

ESTABLISHED = "01"
SYN_SENT = "02"


def far_ports() -> dict[str, int]:
    """The port at the far end of each TCP connection of this machine that is open or being opened, by its inode."""
    ports = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, _, remote, state, *_, inode = line.split(maxsplit=10)[:10]
            if state in (ESTABLISHED, SYN_SENT):
                ports[inode] = int(remote.rpartition(":")[2], 16)
    return ports


def remote_ports(pid: int, table: Mapping[str, int]) -> set[int]:
    """The ports at the far end of this process's TCP connections, in the table of `far_ports`."""
    ports = set()
    with suppress(FileNotFoundError):  # it has ended
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                name = str(descriptor.readlink())
                inode = name.removeprefix("socket:[").removesuffix("]")
                if inode in table:
                    ports.add(table[inode])
    return ports
