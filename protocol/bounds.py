# SPDX-License-Identifier: Apache-2.0
"""How large a request may be, by its api: looked at before anything is kept or decoded.

Kafka has one bound for all, `socket.request.max.bytes` (100 MiB), and threads to spare. Here a request is read on the
event loop, where 100 MiB of a Heartbeat, or a list of millions of empty names, would keep everybody else waiting.
The bounds are far above what clients send: 10,000 groups or topics by name, every partition of a large cluster.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from protocol.apis import ApiKey

ITEMS_MAX: Final = 50_000
"""Items of all arrays of one request together: 20,000 partitions, each in a topic of its own, and some."""

PROTOCOLS_MAX: Final = 1_000
"""Items of a JoinGroup: a member offers a handful of protocols, and every join counts the votes for all of them."""

LEAVING_MAX: Final = 10_000
"""Items of a LeaveGroup: members leave all at once, or none of those who stay would know who is left."""

TAGS_MAX: Final = 8
"""Tagged fields of one struct (KIP-482): no request that is served has more than three."""

SMALL_FRAME_BYTES: Final = 64 * 1024
"""Below, a frame is good for any api."""

_STRINGS: Final = 256 * 1024
_LISTS: Final = 4 * 1024 * 1024
_LISTS_AT_ONCE: Final = 2 * 1024 * 1024
_MEMBERS: Final = 8 * 1024 * 1024

FRAME_BYTES_MAX: Final[Mapping[int, int]] = MappingProxyType(
    {
        # A few strings, each of at most 32 KiB.
        ApiKey.HEARTBEAT: _STRINGS,
        ApiKey.API_VERSIONS: _STRINGS,
        ApiKey.LIST_GROUPS: _STRINGS,
        ApiKey.DESCRIBE_CLUSTER: _STRINGS,
        ApiKey.INIT_PRODUCER_ID: _STRINGS,
        # Lists of names and partitions; those of the hot apis are decoded in one go.
        ApiKey.FETCH: _LISTS,
        ApiKey.LIST_OFFSETS: _LISTS,
        ApiKey.METADATA: _LISTS,
        ApiKey.FIND_COORDINATOR: _LISTS,
        ApiKey.DESCRIBE_GROUPS: _LISTS,
        ApiKey.DELETE_GROUPS: _LISTS,
        ApiKey.OFFSET_DELETE: _LISTS,
        ApiKey.CREATE_TOPICS: _LISTS,
        ApiKey.DELETE_TOPICS: _LISTS,
        ApiKey.CREATE_PARTITIONS: _LISTS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _LISTS,
        ApiKey.DESCRIBE_CONFIGS: _LISTS,
        ApiKey.LEAVE_GROUP: _LISTS_AT_ONCE,
        ApiKey.OFFSET_COMMIT: _LISTS_AT_ONCE,
        ApiKey.OFFSET_FETCH: _LISTS_AT_ONCE,
        # What members tell each other, and records: of any size that fits into the log (`frame_bounds`).
        ApiKey.JOIN_GROUP: _MEMBERS,
        ApiKey.SYNC_GROUP: _MEMBERS,
        ApiKey.PRODUCE: _MEMBERS,
    }
)
"""The longest frame, without its length, by api key."""

_GROWING: Final = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.PRODUCE)


def frame_bounds(message_bytes_max: int) -> Mapping[int, int]:
    """The bounds of a node whose batches may have `message_bytes_max` bytes.

    What goes into one batch may be twice as long in its request, in which no text is compressed.
    """
    bounds = dict(FRAME_BYTES_MAX)
    for key in _GROWING:
        bounds[key] = max(bounds[key], 2 * message_bytes_max)
    return MappingProxyType(bounds)
