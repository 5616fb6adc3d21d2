# SPDX-License-Identifier: Apache-2.0
"""What goes on in a thread while something else is measured."""

import threading
from typing import Final, Self

JOIN_TIMEOUT_S: Final = 60.0


class Background(threading.Thread):
    """A thread that runs until `stop` is called, or until its with statement ends; `run` looks at `over`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let the thread end, and wait for that."""
        self.over.set()
        self.join(JOIN_TIMEOUT_S)
