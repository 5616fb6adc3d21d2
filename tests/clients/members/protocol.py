# SPDX-License-Identifier: Apache-2.0
"""How a member process and the test that started it talk: one JSON object a line, both ways.

From the test: {"command": "commit", "offsets": {"3": 17}}, {"command": "committed", "partitions": [3]},
{"command": "leave"}; the end of standard input means leave, so that no member outlives its test.

From the member: {"event": "assigned" | "revoked" | "lost", "partitions": [...]} as the client's own listener is
told, {"event": "committed" | "offsets", "offsets": {"3": 17}} or {"event": "refused", "error": ...} as the answer
to a command, {"event": "fenced"} when the client says so, {"event": "left"} at the end.
"""

import argparse
import json
import queue
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Options:
    """What a member is started with."""

    bootstrap: str
    group: str
    topic: str
    client_id: str
    instance_id: str | None
    assignor: str
    session_timeout_ms: int
    heartbeat_interval_ms: int


def parse_options() -> Options:
    """Read the options from the command line."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "group", "topic", "client-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--instance-id")
    parser.add_argument("--assignor", choices=["range", "cooperative-sticky"], required=True)
    parser.add_argument("--session-timeout-ms", type=int, required=True)
    parser.add_argument("--heartbeat-interval-ms", type=int, required=True)
    return Options(**vars(parser.parse_args()))


def emit(event: str, **fields: Any) -> None:
    """Tell the test what happened."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def emit_partitions(event: str, partitions: Iterable[Any]) -> None:
    """Tell which partitions the client's listener was given; they have a `partition` attribute in every client."""
    emit(event, partitions=sorted(each.partition for each in partitions))


def offsets_of(command: dict[str, Any]) -> dict[int, int]:
    """Return the offsets of a commit command by partition (JSON's keys are text)."""
    return {int(partition): offset for partition, offset in command["offsets"].items()}


class Commands:
    """The commands that have come in so far, without waiting for more."""

    def __init__(self) -> None:
        """Start reading standard input in a thread of its own."""
        self._queue: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> dict[str, Any] | None:
        """Return the oldest command not yet taken, None when there is none."""
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _read(self) -> None:
        for line in sys.stdin:
            self._queue.put(json.loads(line))
        self._queue.put({"command": "leave"})
