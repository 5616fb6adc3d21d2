# SPDX-License-Identifier: Apache-2.0
"""A request to a broker, with the versions in which it can be sent."""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from protocol.apis import ApiKey, VersionRange

T = TypeVar("T")

NEEDED: Final[Mapping[ApiKey, VersionRange]] = {
    # v10: topic ids; v13 adds a top-level error, which says nothing here
    ApiKey.METADATA: VersionRange(10, 12),
    ApiKey.LIST_OFFSETS: VersionRange(4, 8),  # v2: isolation level; v4: leader epochs
    ApiKey.FIND_COORDINATOR: VersionRange(4, 4),  # KIP-699: several keys
    ApiKey.DESCRIBE_GROUPS: VersionRange(5, 6),
    ApiKey.LIST_GROUPS: VersionRange(4, 5),  # v4: states (KIP-518); v5: types (KIP-848)
    ApiKey.OFFSET_FETCH: VersionRange(
        8, 9
    ),  # v7: require_stable (KIP-447); v8: several groups; v10: ids alone
    ApiKey.OFFSET_COMMIT: VersionRange(8, 9),
}
"""The versions of requests that every broker behind a gateway must have: Kafka 3.0 has the oldest of all of them."""
OPTIONAL: Final[Mapping[ApiKey, VersionRange]] = {
    ApiKey.CONSUMER_GROUP_DESCRIBE: VersionRange(0, 1),
    ApiKey.STREAMS_GROUP_DESCRIBE: VersionRange(0, 0),
    ApiKey.SHARE_GROUP_DESCRIBE: VersionRange(0, 1),
    ApiKey.OFFSET_DELETE: VersionRange(0, 0),
    ApiKey.DELETE_GROUPS: VersionRange(1, 3),
    ApiKey.LEAVE_GROUP: VersionRange(3, 5),
    ApiKey.DESCRIBE_CONFIGS: VersionRange(1, 4),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: VersionRange(0, 1),
    ApiKey.CREATE_TOPICS: VersionRange(5, 7),
    ApiKey.CREATE_PARTITIONS: VersionRange(2, 3),
    ApiKey.DELETE_TOPICS: VersionRange(4, 5),
    ApiKey.SASL_HANDSHAKE: VersionRange(1, 1),
    ApiKey.SASL_AUTHENTICATE: VersionRange(0, 1),
}
"""The versions of requests that a broker behind a gateway need not have, and of requests that only commands send.

An older broker has no requests for the types of groups that it does not support (KIP-848, KIP-1071, KIP-932).
"""

Read = Callable[[Any], Generator[None, None, T]]
"""Reads a decoded response in steps, each of which takes less than a millisecond."""


class ClusterRequest(NamedTuple, Generic[T]):
    """One request: `build` makes its message for the version that is chosen, and `read` reads the response.

    `read` raises RetryLater and RefusedByCluster.
    """

    api: ApiKey
    versions: VersionRange
    build: Callable[[int], object]
    read: Read[T]


def make_request(
    api: ApiKey, message: object, read: Callable[[Any], T], versions: VersionRange | None = None
) -> ClusterRequest[T]:
    """Return a request whose message is the same in all its versions, and whose response is read in one step."""
    return ClusterRequest(
        api, versions or get_versions(api), lambda _version: message, read_in_one_step(read)
    )


def make_plain_request(api: ApiKey, message: object) -> ClusterRequest[Any]:
    """Return a request whose message is the same in all its versions; the result is the decoded response."""
    return ClusterRequest(api, get_versions(api), lambda _version: message, return_response)


def get_versions(api: ApiKey) -> VersionRange:
    """Return the versions in which requests are built and read."""
    return NEEDED.get(api) or OPTIONAL[api]


def read_in_one_step(read: Callable[[Any], T]) -> Read[T]:
    """Return a function that reads a response without a pause."""

    def steps(response: Any) -> Generator[None, None, T]:
        yield from ()
        return read(response)

    return steps


def return_response(response: Any) -> Generator[None, None, Any]:
    """Return the response as it is."""
    yield from ()
    return response


def read_at_once(read: Read[T], response: Any) -> T:
    """Return the result of reading a response, without giving way in between."""
    steps = read(response)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
