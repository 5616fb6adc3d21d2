# SPDX-License-Identifier: Apache-2.0
"""The requests to brokers, with the versions of each, and their responses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.apis import ApiKey, VersionRange

NEEDED: Final = {
    ApiKey.METADATA: VersionRange(
        10, 12
    ),  # v10: topic ids; v13 adds a top-level error, which says nothing here
    ApiKey.LIST_OFFSETS: VersionRange(4, 8),  # v2: isolation level; v4: leader epochs
    ApiKey.FIND_COORDINATOR: VersionRange(4, 4),  # KIP-699: several keys
    ApiKey.DESCRIBE_GROUPS: VersionRange(5, 6),
    ApiKey.LIST_GROUPS: VersionRange(4, 5),  # v4: states (KIP-518); v5: types (KIP-848)
    ApiKey.OFFSET_FETCH: VersionRange(
        8, 9
    ),  # v7: require_stable (KIP-447); v8: several groups; v10 has ids alone
    ApiKey.OFFSET_COMMIT: VersionRange(8, 9),
}
"""The versions of requests that every broker must have: Kafka 3.0 has the oldest of all of them."""
OPTIONAL: Final = {
    ApiKey.CONSUMER_GROUP_DESCRIBE: VersionRange(0, 1),
    ApiKey.STREAMS_GROUP_DESCRIBE: VersionRange(0, 0),
    ApiKey.SHARE_GROUP_DESCRIBE: VersionRange(0, 1),
    ApiKey.OFFSET_DELETE: VersionRange(0, 0),
    ApiKey.DELETE_GROUPS: VersionRange(1, 3),
}
"""The versions of requests that older brokers lack, as they lack such groups (KIP-848, 1071, 932), and of rare ones."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request; `build` makes its message for the version that is chosen."""

    api: ApiKey
    versions: VersionRange
    build: Callable[[int], object]

    @classmethod
    def from_fixed_message(cls, api: ApiKey, message: object) -> "UpstreamRequest":
        """Return a request whose message is the same in all its versions."""
        versions = NEEDED.get(api) or OPTIONAL[api]
        return cls(api, versions, lambda _version: message)


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """The bytes of a response: its body starts at `start` of `frame`."""

    api: ApiKey
    version: int
    frame: bytes
    start: int

    @property
    def encoded_body(self) -> memoryview:
        """The bytes of the body, for comparisons."""
        return memoryview(self.frame)[self.start :]
