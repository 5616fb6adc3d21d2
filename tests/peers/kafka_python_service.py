# SPDX-License-Identifier: Apache-2.0
"""Copied into kafka-python's suite as `test/service.py`, which its source distribution leaves out.

Its fixtures take the broker that KAFKA_URI names, and start none.
"""


class ExternalService:
    """A broker that somebody else starts and stops."""

    def __init__(self, host: str, port: int) -> None:
        """Nothing to do: it runs."""

    def stop(self) -> None:
        """Nothing to do."""

    def dump_logs(self) -> None:
        """Nothing to show."""


class SpawnedService:
    """A broker as a child process; here, none is started."""
