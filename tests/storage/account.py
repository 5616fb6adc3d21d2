# SPDX-License-Identifier: Apache-2.0
"""A simple account of what must be found on a disk, by partition, beside the log managers that write there.

The batches that were accepted, in order, and how many of them must survive a power loss. A batch whose append
failed is in doubt; once its offsets can be used again, it must never be seen.
"""

import random

from protocol.newtypes import Offset, Partition
from storage.format.batch import iter_batches, iter_records
from storage.log_manager import LogManager
from tests.storage.faulty import FaultyFileSystem


def contents(manager: LogManager, partition: int) -> list[bytes]:
    """All batches of a partition, as its manager reads them."""
    found: list[bytes] = []
    offset, end = 0, manager.end_offset(Partition(partition))
    while offset < end:
        data, following = manager.read(Partition(partition), Offset(offset), 300)
        assert data
        assert following > offset
        offset = following
        found += (one.data for one in iter_batches(data, check=True))
    return found


class Account:
    """What all machines share that drive log managers through steps that may fail at any moment."""

    def __init__(self, fs: FaultyFileSystem, seed: int) -> None:
        """Nothing is accepted yet; `seed` is for drawing."""
        self.rng = random.Random(seed)
        self.fs = fs
        self.label = 0
        self.accepted: dict[int, list[bytes]] = {}
        self.durable: dict[int, int] = {}
        self.doubtful: dict[int, list[bytes]] = {}

    def settle(self, manager: LogManager, partition: int, *, power_loss: bool) -> None:
        """What is there now begins as accepted, holds at least what must be there, and has no gaps.

        It is what was accepted, from now on, and durable.
        """
        found = contents(manager, partition)
        accepted = self.accepted.get(partition, [])
        possible = accepted + self.doubtful.get(partition, [])
        least = self.durable.get(partition, 0) if power_loss else len(accepted)
        where = f"partition {partition}, {self.fs.log}"
        assert found == possible[: len(found)], f"not what was accepted: {where}"
        assert len(found) >= least, f"{len(found)} batches of {least}: {where}"
        offsets = [offset for one in found for offset, *_ in iter_records(one)]
        assert offsets == list(range(manager.end_offset(Partition(partition)))), where
        self.accepted[partition] = found
        self.durable[partition] = len(found)
        self.doubtful.pop(partition, None)
