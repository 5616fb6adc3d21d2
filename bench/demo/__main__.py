# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.demo`: exit 0 when everything held, 1 when not, 128 and the signal's number when stopped."""

import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Final

from bench.demo import second_act
from bench.demo.screen import Screen
from bench.demo.story import SERVICE_SETTINGS, play
from bench.servers import Groupkeeper

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Play the story in a directory of its own, which is gone afterwards. Returns the exit status."""
    for number in ENDING:
        signal.signal(number, stop)
    with tempfile.TemporaryDirectory(prefix="gk-demo-") as directory:
        work, screen = Path(directory), Screen()
        status = play(work, Groupkeeper("groupkeeper", work / "service", SERVICE_SETTINGS), screen)
        return status or second_act.play(work, screen)


def stop(number: int, _: FrameType | None) -> None:
    """End the demo; every `with` on the way out ends its process."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)  # a second Ctrl-C must not cut the cleaning short
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
