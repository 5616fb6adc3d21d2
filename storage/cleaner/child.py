# SPDX-License-Identifier: Apache-2.0
"""Cleaning in a process of its own, so that it takes neither the event loop's lock nor its processor time.

The parent creates the new files and passes them open to the child. So a child that outlives
its parent does no harm: the next start removes the files' names, and later writes of the child are lost.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import msgspec

import storage
from storage.cleaner.partition_cleaning import CleaningAborted, CleaningJob, CleaningResult, OffsetMapTooSmall
from storage.disk.filesystem import FILE_MODE, File, RealFile, RealFileSystem
from storage.disk.layout import CLEANED_SUFFIX, INDEX_SUFFIXES, LOG_SUFFIX, segment_name
from storage.errors import CorruptLog

NICENESS: Final = 10
"""The increment of the child's nice value over the node's."""


class Request(msgspec.Struct, frozen=True):
    """The child's input: the job, the open files by their paths, and the parent's process id."""

    job: CleaningJob
    files: dict[str, int]
    parent: int


class Failure(msgspec.Struct, frozen=True, tag=True):
    """The error of a job; `position` and `path` for damage, `errno` for an error of the system."""

    kind: str
    reason: str
    path: str = ""
    position: int | None = None
    errno: int | None = None


class Success(msgspec.Struct, frozen=True, tag=True):
    """The result of a finished job."""

    result: CleaningResult


Answer = Success | Failure


class InheritedFileSystem(RealFileSystem):
    """The operating system's files, of which some are open already."""

    def __init__(self, files: dict[str, int]) -> None:
        self._files = files

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open a file by its name, through the parent's descriptor if it has passed one."""
        number = self._files.get(str(path))
        if number is None:
            return super().open(path, create=create)
        return RealFile(os.dup(number))


class ChildRunner:
    """Runs jobs in child processes, one at a time; `stop` may be called from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def stop(self) -> None:
        """End the child that runs, and start no other."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def __call__(self, job: CleaningJob) -> CleaningResult:
        """Clean a log in a child process.

        Raises the errors of `partition_cleaning.write_cleaned_segments`, and OSError with the child's last message if
        the child failed otherwise.
        """
        files: dict[str, int] = {}
        try:
            for group in job.groups:
                for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
                    path = Path(job.directory) / segment_name(group[0].base_offset, suffix + CLEANED_SUFFIX)
                    # O_EXCL: never a file that another process might write to.
                    files[str(path)] = os.open(
                        path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE
                    )
            return self._run(Request(job, files, os.getpid()))
        finally:
            for number in files.values():
                os.close(number)

    def _run(self, request: Request) -> CleaningResult:
        with self._lock:
            if self._stopped:
                raise CleaningAborted
            process = subprocess.Popen(
                [sys.executable, "-m", "storage.cleaner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=tuple(request.files.values()),
                cwd=Path(storage.__file__).parents[1],
            )
            self._process = process
        try:
            output, errors = process.communicate(msgspec.json.encode(request))
        finally:
            with self._lock:
                self._process = None
        if self._stopped:
            raise CleaningAborted
        if process.returncode:
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            raise OSError(f"the cleaner ended with status {process.returncode}: {lines[-1] if lines else ''}")
        answer = msgspec.json.decode(output, type=Answer)
        if isinstance(answer, Success):
            return answer.result
        raise _error(answer)


def _error(failure: Failure) -> Exception:
    match failure.kind:
        case "corrupt":
            return CorruptLog(failure.path, failure.reason, position=failure.position)
        case "too small":
            return OffsetMapTooSmall(failure.reason)
        case "aborted":
            return CleaningAborted()
    if failure.errno is None:
        return OSError(failure.reason)
    return OSError(failure.errno, failure.reason)
