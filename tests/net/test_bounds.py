# SPDX-License-Identifier: Apache-2.0
"""Requests that are larger than anything their api needs end their connection before they are read."""

from pathlib import Path
from typing import Any

import pytest

from coordinator.api.table import Capabilities
from protocol import hot
from protocol.apis import ApiKey
from protocol.bounds import ITEMS_MAX, LEAVING_MAX, PROTOCOLS_MAX, TAGS_MAX
from protocol.errors import ProtocolError, TooManyItems
from protocol.kafka_python_messages import DescribeGroupsRequest, FindCoordinatorRequest, MetadataRequest
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId, Offset
from protocol.wire import pack_uvarint
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.support.apis import APIS, FRAME_BYTES_MAX, SUPPORTED
from tests.support.log_lines import LogLines


def test_every_api_has_a_bound_and_what_goes_into_the_log_grows_with_its_batches() -> None:
    bounds = Capabilities(APIS.values()).frame_bounds
    large = bounds(100_000_000)
    assert large.keys() == SUPPORTED.keys()
    assert large[ApiKey.SYNC_GROUP] == 200_000_000
    assert large[ApiKey.HEARTBEAT] == FRAME_BYTES_MAX[ApiKey.HEARTBEAT]
    assert bounds(1_000) == FRAME_BYTES_MAX


@pytest.mark.parametrize("api", SUPPORTED, ids=lambda api: api.name)
async def test_the_start_of_a_frame_that_is_too_long_closes_its_connection(
    api: ApiKey, tmp_path: Path, lines: LogLines
) -> None:
    edge = Edge(tmp_path, request_bytes_max=100 << 20)
    client = edge.connect()
    client.send((FRAME_BYTES_MAX[api] + 1).to_bytes(4, "big") + int(api).to_bytes(2, "big"))
    await settle()
    assert client.transport.closed
    assert (edge.stats.oversized_requests, edge.stats.malformed_requests) == (1, 0)
    (line,) = (each for each in lines.of("info") if not each.startswith("topics created"))
    assert f"api key {int(api)} of {FRAME_BYTES_MAX[api] + 1} bytes" in line


async def test_what_came_before_it_is_answered(tmp_path: Path) -> None:
    edge = Edge(tmp_path, request_bytes_max=100 << 20)
    client = edge.connect()
    client.send(requests.api_versions(1), (1 << 20).to_bytes(4, "big") + bytes((0, ApiKey.HEARTBEAT)))
    await settle()
    assert client.correlation_ids() == [1]
    assert client.transport.closed


def names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


def commit(topics: int, partitions: int) -> Any:
    kind = hot.OffsetCommitRequestTopic
    parts = [hot.OffsetCommitRequestPartition(index, Offset(1)) for index in range(partitions)]
    return hot.OffsetCommitRequest(
        group_id=GroupId("g"), topics=[kind(name=f"t{n}", partitions=parts) for n in range(topics)]
    )


def lists(size: int) -> list[tuple[ApiKey, int, Any]]:
    """Requests with `size` items."""
    metadata = MetadataRequest
    return [
        (ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=names(size))),
        (ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(version=5, groups=names(size))),
        (ApiKey.METADATA, 9, metadata(version=9, topics=[
            metadata.MetadataRequestTopic(version=9, name=name) for name in names(size)
        ])),
        (ApiKey.OFFSET_COMMIT, 8, commit(1, size - 1)),
        (ApiKey.OFFSET_COMMIT, 8, commit(size // 10, 9)),
        (ApiKey.OFFSET_FETCH, 7, hot.OffsetFetchRequest(group_id=GroupId("g"), topics=[
            hot.OffsetFetchRequestTopic(name="t", partition_indexes=list(range(size - 1)))
        ])),
    ]  # fmt: skip


def test_as_many_items_as_allowed_are_decoded_and_not_one_more() -> None:
    for api, version, message in lists(ITEMS_MAX):
        codec = find_message_codec(api, version)
        codec.decode_request(codec.encode_request(message), 0)
    for api, version, message in lists(ITEMS_MAX + 10):
        codec = find_message_codec(api, version)
        with pytest.raises(TooManyItems):
            codec.decode_request(codec.encode_request(message), 0)


def test_so_many_members_leave_at_once_and_no_more() -> None:
    codec = find_message_codec(ApiKey.LEAVE_GROUP, 4)
    for count, refused in ((LEAVING_MAX, False), (LEAVING_MAX + 1, True)):
        members = [hot.MemberIdentity(member_id=MemberId(name)) for name in names(count)]
        body = codec.encode_request(hot.LeaveGroupRequest(group_id=GroupId("g"), members=members))
        if refused:
            with pytest.raises(TooManyItems):
                codec.decode_request(body, 0)
        else:
            codec.decode_request(body, 0)


def test_a_member_offers_a_bounded_number_of_protocols() -> None:
    codec = find_message_codec(ApiKey.JOIN_GROUP, 6)
    for count, refused in ((PROTOCOLS_MAX, False), (PROTOCOLS_MAX + 1, True)):
        protocols = [hot.JoinGroupRequestProtocol(name=name) for name in names(count)]
        body = codec.encode_request(hot.JoinGroupRequest(group_id=GroupId("g"), protocols=protocols))
        if refused:
            with pytest.raises(TooManyItems):
                codec.decode_request(body, 0)
        else:
            codec.decode_request(body, 0)


@pytest.mark.parametrize(("api", "version"), [(ApiKey.HEARTBEAT, 4), (ApiKey.FIND_COORDINATOR, 4)])
def test_tagged_fields_are_bounded(api: ApiKey, version: int) -> None:
    codec = find_message_codec(api, version)
    body = codec.encode_request(
        hot.HeartbeatRequest(group_id=GroupId("g"))
        if api is ApiKey.HEARTBEAT
        else FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=["g"])
    )
    tag = pack_uvarint(100) + pack_uvarint(0)
    codec.decode_request(body[:-1] + pack_uvarint(TAGS_MAX) + tag * TAGS_MAX, 0)
    with pytest.raises(TooManyItems):
        codec.decode_request(body[:-1] + pack_uvarint(TAGS_MAX + 1) + tag * (TAGS_MAX + 1), 0)


async def test_a_good_request_before_a_malformed_one_and_a_bad_length_is_answered(tmp_path: Path) -> None:
    """All three in one packet; the compiled connection once took its own failure for None here."""
    edge = Edge(tmp_path)
    client = edge.connect()
    malformed = requests.framed(requests.header(ApiKey.HEARTBEAT, 4) + b"\xff")
    client.send(requests.api_versions(1), malformed, bytes(4))
    await settle()
    assert client.correlation_ids() == [1]
    assert client.transport.closed
    assert edge.stats.malformed_requests == 1
    assert issubclass(TooManyItems, ProtocolError)
