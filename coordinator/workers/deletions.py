# SPDX-License-Identifier: Apache-2.0
"""Which offsets in deleted topics may still be in which partitions, as the supervisor knows it; pure.

A deletion has the version of the topics that it came with. A leader says up to which version it has dropped what was
committed in deleted topics, once that is durable, and before it takes over any later version: so whoever has not said
it has no commit to a topic that was made anew under such a name, and the next leader may drop all that it finds.
"""

from collections import deque
from collections.abc import Collection, Sequence

from protocol.names import Partition


class Deletions:
    """The deletions that are not confirmed yet for every partition."""

    def __init__(self, partitions: int) -> None:
        self._recent: deque[tuple[int, Sequence[str]]] = deque()
        self._dropped = [0] * partitions

    def went(self, version: int, names: Sequence[str]) -> None:
        """These topics are gone since this version."""
        self._recent.append((version, names))

    def dropped(self, partition: Partition, version: int, damaged: Collection[Partition] = ()) -> None:
        """A partition holds no offsets in topics that went up to this version; the `damaged` ones have no leader."""
        self._dropped[partition] = max(self._dropped[partition], version)
        if self._recent and self._recent[0][0] <= version:
            least = min((v for p, v in enumerate(self._dropped) if p not in damaged), default=version)
            while self._recent and self._recent[0][0] <= least:
                self._recent.popleft()

    def left(self, partition: Partition) -> list[str]:
        """The topics that went and whose offsets the partition may still hold, each once."""
        dropped = self._dropped[partition]
        names = (name for version, names in self._recent if version > dropped for name in names)
        return list(dict.fromkeys(names))

    def __len__(self) -> int:
        return len(self._recent)
