# SPDX-License-Identifier: Apache-2.0
"""kafka-python in the process of the tests, where what it leaves behind would fail another test."""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def closed_after(client: Any) -> Iterator[Any]:
    """A client, closed in the end; the sockets of its connections that were refused go with it.

    It leaves those to the garbage collector, which warns of sockets that are not closed whenever it comes.
    """
    try:
        yield client
    finally:
        client.close()
        del client
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
