# SPDX-License-Identifier: Apache-2.0
"""Which ports a process is connected to, as the kernel sees it."""

from contextlib import suppress
from pathlib import Path

ESTABLISHED = "01"
SYN_SENT = "02"


def remote_ports(pid: int) -> set[int]:
    """The ports at the far end of this process's TCP connections, now."""
    sockets = set()
    with suppress(FileNotFoundError):  # it has ended
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                name = str(descriptor.readlink())
                if name.startswith("socket:["):
                    sockets.add(name.removeprefix("socket:[").removesuffix("]"))
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, _, remote, state, *_, inode = line.split()[:10]
            if inode in sockets and state in (ESTABLISHED, SYN_SENT):
                ports.add(int(remote.rpartition(":")[2], 16))
    return ports
