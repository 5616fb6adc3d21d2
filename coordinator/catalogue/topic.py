# SPDX-License-Identifier: Apache-2.0
"""A topic of the catalogue, and the refusal of a request."""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from coordinator.catalogue.names import INTERNAL_TOPICS
from protocol.errors import ErrorCode

# Messages quote what the client sent, and a string in a response may have 32,767 bytes.
MESSAGE_LENGTH_MAX: Final = 1_000


class Topic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic without data: its name, id, number of partitions and settings.

    `id` is the 16 bytes of its uuid. `configs` holds the settings as a client wrote them; the mapping is never changed.
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
        """True if clients see this topic as one of the service itself."""
        return self.name in INTERNAL_TOPICS

    def has_partition(self, index: int) -> bool:
        """Return whether the topic has a partition of this number."""
        return 0 <= index < self.partitions


class Refusal(NamedTuple):
    """A refused request: the error code for the client, and a text if there is more to report."""

    error: ErrorCode
    message: str | None = None

    @property
    def truncated_message(self) -> str | None:
        """The message at a length that fits into any response."""
        if self.message is None or len(self.message) <= MESSAGE_LENGTH_MAX:
            return self.message
        return f"{self.message[:MESSAGE_LENGTH_MAX]}..."


NO_ERROR: Final = Refusal(ErrorCode.NONE)
"""The error code and text of a response if nothing was refused."""
