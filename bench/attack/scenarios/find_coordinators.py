# SPDX-License-Identifier: Apache-2.0
"""FindCoordinator of 40,000 groups in one request."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import FindCoordinatorRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    message = FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=names("g", 40_000))
    return [request(ApiKey.FIND_COORDINATOR, 4, message)]
