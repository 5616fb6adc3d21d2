# SPDX-License-Identifier: Apache-2.0
"""What the catalogue holds, and how it says no."""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from coordinator.catalogue.names import INTERNAL_TOPICS
from protocol.errors import ErrorCode

# Messages quote what the client sent, and a string in a response may have 32,767 bytes.
MESSAGE_LENGTH_MAX: Final = 1_000


class Topic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One topic: no data, only that it exists, how many partitions it has and what was configured for it.

    `id` is the 16 bytes of its uuid. `configs` holds what a client set, as it was written; it is never changed.
    """

    name: str
    id: bytes
    partitions: int
    configs: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def uuid(self) -> uuid.UUID:
        """The id as messages carry it."""
        return uuid.UUID(bytes=self.id)

    @property
    def is_internal(self) -> bool:
        """Whether clients hear that this topic belongs to the service itself."""
        return self.name in INTERNAL_TOPICS

    def has_partition(self, index: int) -> bool:
        """Whether there is a partition of this number."""
        return 0 <= index < self.partitions


class Refusal(NamedTuple):
    """Something that was turned down: the code for the client, and a text where there is more to say."""

    error: ErrorCode
    message: str | None = None

    @property
    def shown(self) -> str | None:
        """The message at a length that fits into any response."""
        if self.message is None or len(self.message) <= MESSAGE_LENGTH_MAX:
            return self.message
        return f"{self.message[:MESSAGE_LENGTH_MAX]}..."


NO_ERROR: Final = Refusal(ErrorCode.NONE)
"""What an answer says where nothing was refused."""
