# SPDX-License-Identifier: Apache-2.0
"""The child process: reads one job from standard input and writes its result to standard output."""

import os
import sys
import time
from functools import partial

import msgspec

from storage.cleaner.child import NICENESS, Answer, Failure, InheritedFileSystem, Request, Success
from storage.cleaner.partition_cleaning import (
    CleaningAborted,
    OffsetMapTooSmall,
    Throttle,
    write_cleaned_segments,
)
from storage.errors import CorruptLog


def main() -> None:
    """Clean a log, and report the result or the expected error; any other error is a bug, and leaves a traceback."""
    os.nice(NICENESS)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    answer: Answer
    try:
        job = request.job
        still_wanted = partial(_is_child_of, request.parent)
        throttle = Throttle(job.io_bytes_per_second, still_wanted, time.monotonic, time.sleep)
        result = write_cleaned_segments(InheritedFileSystem(request.files), job, throttle)
        answer = Success(result)
    except CorruptLog as error:
        answer = Failure("corrupt", error.reason, path=error.path, position=error.position)
    except OffsetMapTooSmall as error:
        answer = Failure("too small", str(error))
    except CleaningAborted:
        answer = Failure("aborted", "the node is gone")
    except OSError as error:
        answer = Failure("system", error.strerror or str(error), errno=error.errno)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


def _is_child_of(parent: int) -> bool:
    return os.getppid() == parent


main()
