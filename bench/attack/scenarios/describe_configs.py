# SPDX-License-Identifier: Apache-2.0
"""DescribeConfigs of 5,000 topics in one request."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import DescribeConfigsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    kind = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        kind(version=1, resource_type=2, resource_name=name, configuration_keys=None)
        for name in names("t", 5_000)
    ]
    message = DescribeConfigsRequest(version=1, resources=resources, include_synonyms=True)
    return [request(ApiKey.DESCRIBE_CONFIGS, 1, message)]
