# SPDX-License-Identifier: Apache-2.0
"""What the /ready of every process has."""

from typing import TypedDict


class Ready(TypedDict):
    """What any process says of itself."""

    ready: bool
    """Whether most of it can be used."""
    complete: bool
    """Whether all of it can."""
