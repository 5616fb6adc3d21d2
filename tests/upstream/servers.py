# SPDX-License-Identifier: Apache-2.0
"""Where a cluster is, as the upstream's configuration has it."""

from coordinator.config import Address


def servers(bootstrap: str) -> tuple[Address, ...]:
    """The addresses of a cluster that says where it is in one text, with commas."""
    return tuple(Address.parse(part) for part in bootstrap.split(","))
