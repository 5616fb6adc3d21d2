# SPDX-License-Identifier: Apache-2.0
"""IncrementalAlterConfigs of 10,000 topics in one request."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
TOPIC_RESOURCE = 2


def frames(size: Size) -> list[bytes]:
    """One request."""
    resources = [
        Resource(
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configs=[Resource.AlterableConfig(name="groupkeeper.end.group", config_operation=0, value="g0")],
        )
        for name in names("t", 10_000)
    ]
    message = IncrementalAlterConfigsRequest(version=0, resources=resources, validate_only=False)
    return [request(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, message)]
