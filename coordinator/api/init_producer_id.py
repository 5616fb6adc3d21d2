# SPDX-License-Identifier: Apache-2.0
"""The handler of InitProducerId v0-v5: an id for producers that number their records (KIP-98), without transactions.

v2: flexible. v3: the id and epoch that the producer has (KIP-360). v4: PRODUCER_FENCED. v5: TRANSACTION_ABORTABLE.

Producers are idempotent by default and send this before their first Produce. Because it is served, they reach the
response that explains why records are refused; without it they only report that the broker does not support it.
"""

from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import InitProducerIdRequest, InitProducerIdResponse, build_schema

NONE = -1


def handle(node: Node, request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse:
    """Return a new id with epoch 0, whatever id the producer has, as Kafka does (TransactionCoordinator).

    Return INVALID_REQUEST for an id without an epoch or the reverse (KafkaApis), and for a transactional id, like
    FindCoordinator, which transactional producers call first.
    """
    version = ctx.api_version
    has_id, has_epoch = request.producer_id != NONE, request.producer_epoch != NONE
    if has_id != has_epoch or request.transactional_id is not None:
        return error_response(request, ErrorCode.INVALID_REQUEST, version)
    return InitProducerIdResponse(version=version, producer_id=node.new_producer_id(), producer_epoch=0)


def error_response(request: InitProducerIdRequest, error: ErrorCode, version: int) -> InitProducerIdResponse:
    """Return the response with an error, and no id."""
    return InitProducerIdResponse(version=version, error_code=error, producer_id=NONE, producer_epoch=NONE)


API: Final = Api(
    build_schema(InitProducerIdRequest, InitProducerIdResponse),
    versions=VersionRange(0, 5),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=True,
)
