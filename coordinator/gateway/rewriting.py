# SPDX-License-Identifier: Apache-2.0
"""Changes responses of brokers: addresses, the offered versions, and the mechanisms to authenticate."""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.offload import Change
from coordinator.gateway.routing_types import Rewritten, with_length
from protocol.apis import ApiKey, ApiVersionRange, VersionRange
from protocol.errors import ErrorCode, Truncated
from protocol.headers import encode_response, has_flexible_response_header
from protocol.kafka_python_messages import (
    ApiVersionsResponse,
    DescribeClusterResponse,
    FindCoordinatorResponse,
    SaslHandshakeResponse,
)
from protocol.message_codecs import find_message_codec
from protocol.metadata_head import ListedBroker, encode_metadata_head, read_metadata_head
from protocol.produce_proxying import make_endpoint_replacer
from protocol.wire import INT32, skip_tags

Response = TypeVar("Response")

HIDDEN_FEATURES: Final = frozenset({"group.version", "share.version", "streams.version"})
"""The features of brokers that are not offered, because they are for kinds of groups that are not coordinated here."""
KERBEROS: Final = "GSSAPI"
"""The mechanism that cannot pass through a gateway, because its tickets name the broker that they are for."""


class OfferedVersions(NamedTuple):
    """The versions that are offered on one kind of port, by api key."""

    forwarded: Mapping[int, VersionRange]
    """The versions of apis that pass to brokers, as far as the brokers have them, too."""
    here: Mapping[int, VersionRange]
    """The versions of apis that are answered here, whatever the brokers have."""


def make_metadata_rewriter(book: AddressBook, version: int) -> Callable[[object, bytes], Rewritten]:
    """Return a rewriter for Metadata: the brokers' addresses become the gateway's, and our nodes join them."""

    def rewrite(_client: object, frame: bytes) -> Rewritten:
        head = read_metadata_head(frame, version)
        if head is None:
            return None
        return encode_metadata_head(
            frame, head, book.register_brokers_and_list_nodes(head.brokers), version
        ), head.end

    return rewrite


def make_produce_response_rewriter(book: AddressBook, version: int) -> Change:
    """Return a change of Produce from v10 on: the addresses of the leaders that it names become the gateway's."""
    return make_endpoint_replacer(version, book.register_and_translate_broker)


def make_cluster_rewriter(book: AddressBook, version: int) -> Change:
    """Return a change of DescribeCluster: the brokers' addresses become the gateway's, and our nodes join them."""

    def change(response: DescribeClusterResponse) -> None:
        by_id = {broker.broker_id: broker for broker in response.brokers}
        listed = [
            ListedBroker(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        ]
        if response.error_code:
            return
        response.brokers = []
        for node in book.register_brokers_and_list_nodes(listed):
            broker = by_id.get(node.node_id) or DescribeClusterResponse.DescribeClusterBroker(version=version)
            broker.broker_id, broker.host, broker.port, broker.rack = node
            response.brokers.append(broker)

    return _decoded(ApiKey.DESCRIBE_CLUSTER, version, change)


def make_coordinator_rewriter(book: AddressBook, version: int) -> Change:
    """Return a change of FindCoordinator for transactions: the brokers' addresses become the gateway's."""

    def change(response: FindCoordinatorResponse) -> None:
        for found in response.coordinators if version >= 4 else [response]:
            moved = (
                book.register_and_translate_broker(ListedBroker(found.node_id, found.host, found.port, None))
                if found.node_id >= 0
                else None
            )
            if moved is not None:
                found.host, found.port = moved.host, moved.port

    return _decoded(ApiKey.FIND_COORDINATOR, version, change)


def make_handshake_rewriter(version: int, *, refused: bool) -> Change:
    """Return a change of SaslHandshake that removes Kerberos from the mechanisms, and sets the error if `refused`."""

    def change(response: SaslHandshakeResponse) -> None:
        response.mechanisms = [name for name in response.mechanisms if name != KERBEROS]
        if refused:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM

    return _decoded(ApiKey.SASL_HANDSHAKE, version, change)


def make_api_versions_rewriter(ours: OfferedVersions, broker_version: int, client_version: int) -> Change:
    """Return a change of ApiVersions: the versions that both the broker and `ours` have, and all answered here.

    `broker_version` is the version of the broker's response, and `client_version` the version of the new response.
    """

    @lru_cache(maxsize=16)  # all brokers of a cluster report the same, except the number of the features
    def rewritten(body: bytes) -> bytes:
        response = find_message_codec(ApiKey.API_VERSIONS, broker_version).decode_response(body, 0)
        version = 0 if response.error_code == ErrorCode.UNSUPPORTED_VERSION else client_version
        if response.error_code == ErrorCode.NONE:
            theirs = {
                each.api_key: VersionRange(each.min_version, each.max_version) for each in response.api_keys
            }
            response.api_keys = [
                ApiVersionsResponse.ApiVersion(
                    version=version, api_key=offer.key, min_version=offer.min, max_version=offer.max
                )
                for offer in compute_offers_for_broker(ours, theirs)
            ]
            _hide_features(response)
        return find_message_codec(ApiKey.API_VERSIONS, version).encode_response(response)

    return lambda frame: with_length(frame[4:8] + rewritten(frame[8:]))


def compute_offers_for_broker(
    ours: OfferedVersions, theirs: Mapping[int, VersionRange]
) -> list[ApiVersionRange]:
    """Return the offers for a broker that offers `theirs`: the versions that both have, and all answered here."""
    common = []
    for key, mine in sorted(ours.forwarded.items()):
        low, high = theirs.get(key, (1, 0))
        if max(low, mine.min) <= min(high, mine.max):
            common.append(ApiVersionRange(key, max(low, mine.min), min(high, mine.max)))
    here = (ApiVersionRange(key, *mine) for key, mine in ours.here.items())
    return sorted((*common, *here))


def _hide_features(response: ApiVersionsResponse) -> None:
    for field in ("supported_features", "finalized_features"):
        features = getattr(response, field, None)
        if features:
            setattr(response, field, [each for each in features if each.name not in HIDDEN_FEATURES])


def decode_framed_response(api_key: int, version: int, frame: bytes) -> Any:
    """Return the response in a frame with its length. Raises ProtocolError."""
    codec = find_message_codec(api_key, version)
    flexible = has_flexible_response_header(api_key, codec.flexible)
    try:
        return codec.decode_response(frame, skip_tags(frame, 8) if flexible else 8)
    except (IndexError, struct.error):
        raise Truncated("an answer") from None


def encode_replacement(api_key: int, version: int, frame: bytes, response: object) -> bytes:
    """Return the frame, with its length, of a response that takes the place of the one in `frame`."""
    codec = find_message_codec(api_key, version)
    flexible = has_flexible_response_header(api_key, codec.flexible)
    return encode_response(INT32(frame, 4)[0], codec.encode_response(response), flexible)


def _decoded(api_key: ApiKey, version: int, change: Callable[[Response], None]) -> Change:
    """Return a change that decodes a response, calls `change`, and encodes the response again."""

    def make(frame: bytes) -> bytes:
        response: Response = decode_framed_response(api_key, version, frame)
        change(response)
        return encode_replacement(api_key, version, frame, response)

    return make
