# SPDX-License-Identifier: Apache-2.0
"""What is changed in answers, in every version: what comes out is what kafka-python writes for the changed message."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from struct import pack
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from coordinator.config import Address
from coordinator.gateway import rewriting
from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.offload import Change, apply_change_to_whole_response
from coordinator.gateway.rewriting import HIDDEN_FEATURES, OfferedVersions, compute_offers_for_broker
from coordinator.gateway.routes import FORWARDED
from protocol.apis import ApiKey, ApiVersionRange, VersionRange
from protocol.errors import ErrorCode, ProtocolError
from protocol.headers import RequestHeader, encode_request_header, has_flexible_response_header
from protocol.kafka_python_messages import find_request_and_response_classes
from protocol.message_codecs import find_message_codec
from protocol.produce_proxying import expects_response
from tests.protocol.schemas import Values, sample, to_kafka_python, values

CORRELATION_ID = 77
OURS = OurNode(1_000_001, Address("groups.example", 9999), Address("127.0.0.1", 1))


def place(node_id: int) -> Address | None:
    """Where the gateway has a broker; for some it has no port."""
    return None if node_id % 7 == 6 else Address("gateway.example", 10_000 + node_id % 50_000)


def new_book() -> AddressBook:
    """A book that knows no broker, and one node of ours."""
    book = AddressBook(place, lambda *_: None)
    book.set_our_nodes({OURS.node_id: OURS})
    return book


def versions_of(api: ApiKey) -> range:
    """All that kafka-python has of the versions that pass."""
    have = FORWARDED[api]
    return range(max(have.min, find_request_and_response_classes(api)[1].valid_versions[0]), have.max + 1)


def frame_of(api: ApiKey, drawn: Values, version: int) -> bytes:
    """A response with these values, as a broker sends it."""
    cls = find_request_and_response_classes(api)[1]
    codec = find_message_codec(api, version)
    body = codec.encode_response(to_kafka_python(cls, cls._struct, drawn, version))
    tags = b"\0" if has_flexible_response_header(api, codec.flexible) else b""
    return pack(">ii", 4 + len(tags) + len(body), CORRELATION_ID) + tags + body


def rewritten(change: Change, frame: bytes) -> bytes:
    """All that leaves in place of this whole answer."""
    head, taken = apply_change_to_whole_response(change, frame)
    return head + frame[taken:]


def rewritten_metadata(version: int, frame: bytes) -> bytes:
    """All that leaves in place of these bytes of a Metadata response."""
    done = rewriting.make_metadata_rewriter(new_book(), version)(None, frame)
    assert isinstance(done, tuple)
    head, taken = done
    return bytes(head + frame[taken:])


def drawn_responses(api: ApiKey) -> st.SearchStrategy[tuple[int, Values]]:
    """A version, and values for it."""
    struct = find_request_and_response_classes(api)[1]._struct
    return st.sampled_from(list(versions_of(api))).flatmap(
        lambda version: st.tuples(st.just(version), values(struct, version))
    )


def moved(nodes: list[Values], id_name: str) -> list[Values]:
    """The nodes where clients are to find them."""
    placed = [(node, place(node[id_name])) for node in nodes]
    return [{**node, "host": at.host, "port": at.port} for node, at in placed if at is not None]


slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@slow
@given(drawn_responses(ApiKey.METADATA))
def test_metadata_names_the_gateway_and_our_nodes_and_is_otherwise_as_it_was(
    drawn: tuple[int, Values],
) -> None:
    version, message = drawn
    ours = {"node_id": OURS.node_id, "host": OURS.address.host, "port": OURS.address.port, "rack": None}
    expected = {**message, "brokers": [*moved(message["brokers"], "node_id"), ours]}
    got = rewritten_metadata(version, frame_of(ApiKey.METADATA, message, version))
    assert got == frame_of(ApiKey.METADATA, expected, version)


@slow
@given(drawn_responses(ApiKey.METADATA), st.data())
def test_of_metadata_no_more_is_waited_for_than_the_brokers(
    drawn: tuple[int, Values], data: st.DataObject
) -> None:
    version, message = drawn
    frame = frame_of(ApiKey.METADATA, message, version)
    rewrite = rewriting.make_metadata_rewriter(new_book(), version)
    whole = rewritten_metadata(version, frame)
    end = rewrite(None, frame)[1]  # type: ignore[index]
    cut = data.draw(st.integers(8, len(frame)))
    assert (rewrite(None, frame[:cut]) is None) == (cut < end)
    if cut >= end:
        assert rewritten_metadata(version, frame[:cut]) == whole[: len(whole) - len(frame) + cut]


@slow
@given(drawn_responses(ApiKey.PRODUCE))
def test_produce_names_leaders_at_the_gateway(drawn: tuple[int, Values]) -> None:
    version, message = drawn
    frame = frame_of(ApiKey.PRODUCE, message, version)
    if version < 10:
        return
    expected = {**message, "node_endpoints": moved(message["node_endpoints"] or [], "node_id")}
    # a field that is empty stays where it was there
    if message["node_endpoints"] and not expected["node_endpoints"]:
        return
    assume(not any(node["host"].endswith("\0") for node in message["node_endpoints"] or []))  # of no broker
    got = rewritten(rewriting.make_produce_response_rewriter(new_book(), version), frame)
    assert got == frame_of(ApiKey.PRODUCE, expected, version)


@slow
@given(drawn_responses(ApiKey.PRODUCE), st.integers(0, 65_535), st.integers(0, 256))
@example((10, {"responses": [], "throttle_time_ms": 0, "node_endpoints": []}), 0, 0)
def test_a_new_leader_is_moved_whatever_its_name_and_its_port(
    drawn: tuple[int, Values], port: int, throttle_time_ms: int
) -> None:
    version, message = drawn
    if version < 10:
        return
    leader = {"node_id": 3, "host": "", "port": port, "rack": None}
    message |= {"throttle_time_ms": throttle_time_ms, "node_endpoints": [leader]}
    got = rewritten(
        rewriting.make_produce_response_rewriter(new_book(), version),
        frame_of(ApiKey.PRODUCE, message, version),
    )
    message["node_endpoints"] = [leader | {"host": "gateway.example", "port": 10_003}]
    assert got == frame_of(ApiKey.PRODUCE, message, version)


def test_produce_with_a_new_leader_names_the_gateway() -> None:
    struct = find_request_and_response_classes(ApiKey.PRODUCE)[1]._struct
    for version in range(10, 14):
        message = sample(struct, version)
        message["node_endpoints"] = [{"node_id": 3, "host": "secret", "port": 1, "rack": "r"}]
        got = rewritten(
            rewriting.make_produce_response_rewriter(new_book(), version),
            frame_of(ApiKey.PRODUCE, message, version),
        )
        assert b"secret" not in got
        message["node_endpoints"] = [{"node_id": 3, "host": "gateway.example", "port": 10_003, "rack": "r"}]
        assert got == frame_of(ApiKey.PRODUCE, message, version)


@slow
@given(drawn_responses(ApiKey.DESCRIBE_CLUSTER))
def test_describe_cluster_names_the_gateway_and_our_nodes(drawn: tuple[int, Values]) -> None:
    version, message = drawn
    ids = [broker["broker_id"] for broker in message["brokers"]]
    if len(set(ids)) < len(ids):
        return
    ours = {"broker_id": OURS.node_id, "host": OURS.address.host, "port": OURS.address.port, "rack": None}
    if version >= 2:
        ours["is_fenced"] = False
    brokers = [*moved(message["brokers"], "broker_id"), ours]
    expected = message if message["error_code"] else {**message, "brokers": brokers}
    frame = frame_of(ApiKey.DESCRIBE_CLUSTER, message, version)
    got = rewritten(rewriting.make_cluster_rewriter(new_book(), version), frame)
    assert got == frame_of(ApiKey.DESCRIBE_CLUSTER, expected, version)


def _found(node: Values) -> Values:
    at = place(node["node_id"]) if node["node_id"] >= 0 else None
    return node if at is None else {**node, "host": at.host, "port": at.port}


@slow
@given(drawn_responses(ApiKey.FIND_COORDINATOR))
def test_coordinators_of_transactions_are_found_at_the_gateway(drawn: tuple[int, Values]) -> None:
    version, message = drawn
    if version >= 4:
        expected = {**message, "coordinators": [_found(each) for each in message["coordinators"]]}
    else:
        expected = _found(message)
    frame = frame_of(ApiKey.FIND_COORDINATOR, message, version)
    got = rewritten(rewriting.make_coordinator_rewriter(new_book(), version), frame)
    assert got == frame_of(ApiKey.FIND_COORDINATOR, expected, version)


@slow
@given(drawn_responses(ApiKey.API_VERSIONS))
def test_api_versions_is_what_both_have(drawn: tuple[int, Values]) -> None:
    version, message = drawn
    message["error_code"] = 0
    theirs = {
        each["api_key"]: VersionRange(each["min_version"], each["max_version"])
        for each in message["api_keys"]
    }
    offered = OfferedVersions({0: VersionRange(0, 13), 1: VersionRange(4, 15)}, {11: VersionRange(0, 9)})
    common = compute_offers_for_broker(offered, theirs)
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in common]
    expected = {**message, "api_keys": keys}
    got = rewritten(
        rewriting.make_api_versions_rewriter(offered, version, version),
        frame_of(ApiKey.API_VERSIONS, message, version),
    )
    assert got == frame_of(ApiKey.API_VERSIONS, expected, version)


def test_offers_are_cut_to_what_passes_and_joined_by_what_is_answered_here() -> None:
    ours = OfferedVersions(
        {0: VersionRange(0, 13), 1: VersionRange(4, 15), 2: VersionRange(1, 4), 3: VersionRange(0, 1)},
        {11: VersionRange(0, 9)},
    )
    theirs = {
        0: VersionRange(0, 20),
        1: VersionRange(2, 18),
        2: VersionRange(5, 9),  # nothing in common
        11: VersionRange(0, 3),
        68: VersionRange(0, 1),  # not ours
    }
    assert compute_offers_for_broker(ours, theirs) == [
        ApiVersionRange(0, 0, 13),
        ApiVersionRange(1, 4, 15),
        ApiVersionRange(11, 0, 9),
    ]


def test_features_of_groups_that_are_not_served_are_not_offered() -> None:
    cls = find_request_and_response_classes(ApiKey.API_VERSIONS)[1]
    message = sample(cls._struct, 4)
    message["error_code"] = 0
    kept = "transaction.version"
    for field, low, high in (
        ("supported_features", "min_version", "max_version"),
        ("finalized_features", "min_version_level", "max_version_level"),
    ):
        message[field] = [{"name": name, low: 1, high: 1} for name in (*sorted(HIDDEN_FEATURES), kept)]
    frame = frame_of(ApiKey.API_VERSIONS, message, 4)
    got = rewritten(rewriting.make_api_versions_rewriter(OfferedVersions({}, {}), 4, 4), frame)
    read: Any = find_message_codec(ApiKey.API_VERSIONS, 4).decode_response(got, 8)
    assert [each.name for each in read.supported_features] == [kept]
    assert [each.name for each in read.finalized_features] == [kept]


def test_a_broker_too_old_for_the_version_says_so_in_version_0() -> None:
    cls = find_request_and_response_classes(ApiKey.API_VERSIONS)[1]
    message = {
        "error_code": int(ErrorCode.UNSUPPORTED_VERSION),
        "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}],
    }
    frame = frame_of(ApiKey.API_VERSIONS, message, 0)
    assert cls is not None
    assert rewritten(rewriting.make_api_versions_rewriter(OfferedVersions({}, {}), 4, 4), frame) == frame


@pytest.mark.parametrize("refused", [False, True])
def test_kerberos_is_not_among_the_mechanisms(refused: bool) -> None:
    message: Values = {"error_code": 0, "mechanisms": ["PLAIN", "GSSAPI", "SCRAM-SHA-256"]}
    error = int(ErrorCode.UNSUPPORTED_SASL_MECHANISM) if refused else 0
    expected: Values = {"error_code": error, "mechanisms": ["PLAIN", "SCRAM-SHA-256"]}
    frame = frame_of(ApiKey.SASL_HANDSHAKE, message, 1)
    got = rewritten(rewriting.make_handshake_rewriter(1, refused=refused), frame)
    assert got == frame_of(ApiKey.SASL_HANDSHAKE, expected, 1)


@slow
@given(
    st.binary(max_size=300),
    st.sampled_from((ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.DESCRIBE_CLUSTER)),
    st.data(),
)
def test_nonsense_is_refused_and_does_no_other_harm(body: bytes, api: ApiKey, data: st.DataObject) -> None:
    version = data.draw(
        st.sampled_from([each for each in versions_of(api) if api != ApiKey.PRODUCE or each >= 10])
    )
    frame = pack(">ii", 4 + len(body), CORRELATION_ID) + body
    made: dict[ApiKey, Callable[[AddressBook, int], Change]] = {
        ApiKey.METADATA: lambda _book, version: partial(rewritten_metadata, version),
        ApiKey.PRODUCE: rewriting.make_produce_response_rewriter,
        ApiKey.DESCRIBE_CLUSTER: rewriting.make_cluster_rewriter,
    }
    change = made[api](new_book(), version)
    with suppress(ProtocolError):
        apply_change_to_whole_response(change, frame)


@given(
    st.sampled_from(range(3, 14)),
    st.sampled_from((-1, 0, 1)),
    st.none() | st.text(max_size=300),
    st.text(max_size=300),
    st.data(),
)
def test_the_acks_of_a_produce_request_are_found_however_much_of_it_is_there(
    version: int, acks: int, transactional_id: str | None, client_id: str, data: st.DataObject
) -> None:
    cls = find_request_and_response_classes(ApiKey.PRODUCE)[0]
    codec = find_message_codec(ApiKey.PRODUCE, version)
    header = RequestHeader(ApiKey.PRODUCE, version, 1, client_id)
    head = encode_request_header(header, flexible=codec.flexible)
    body = codec.encode_request(
        cls(version=version, transactional_id=transactional_id, acks=acks, topic_data=[])
    )
    frame = pack(">i", len(head) + len(body)) + head + body
    assert expects_response(frame, version) == (acks != 0)
    cut = data.draw(st.integers(12, len(frame)))
    assert expects_response(frame[:cut], version) in (None, acks != 0)


def test_a_produce_request_that_ends_before_its_acks_is_refused() -> None:
    with pytest.raises(ProtocolError):
        expects_response(pack(">ihhih", 10, 0, 9, 1, -1), 9)
