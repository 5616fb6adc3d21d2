# SPDX-License-Identifier: Apache-2.0
"""The progress of an audit: a bar on a terminal, and nothing elsewhere."""

import threading
from types import TracebackType
from typing import Self, TextIO

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

LOOK_EVERY_S = 0.2


class Progress:
    """Shows the current step, and how many of Spark's tasks for it are done."""

    def __init__(self, stream: TextIO) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        console = Console(file=stream)
        self._bar = Bar(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._bar.add_task("", total=None)
        self._done = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def show_step(self, words: str) -> None:
        """Show the description of the current step."""
        self._bar.update(self._task, description=words, total=None, completed=0)

    def watch(self, spark: SparkSession) -> None:
        """Show the progress of Spark's tasks from now on, in a thread of its own, if the bar is visible."""
        if not self._bar.disable:
            self._watcher = threading.Thread(
                target=self._look, args=(spark,), name="audit-progress", daemon=True
            )
            self._watcher.start()

    def close(self) -> None:
        """Remove the bar, and wait for the end of the watcher."""
        self._done.set()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None
        self._bar.stop()

    def _look(self, spark: SparkSession) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not self._done.wait(LOOK_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            running = [stage for stage in stages if stage is not None]
            total = sum(stage.numTasks for stage in running)
            if total:
                done = sum(stage.numCompletedTasks for stage in running)
                self._bar.update(self._task, total=total, completed=done)
