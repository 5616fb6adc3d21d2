# SPDX-License-Identifier: Apache-2.0
"""The fields that every process has in /ready."""

from typing import TypedDict


class ReadyResponse(TypedDict):
    """The state of a process in /ready."""

    ready: bool
    """True if most parts of the process can be used."""
    complete: bool
    """True if all parts of the process can be used."""
