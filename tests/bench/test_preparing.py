# SPDX-License-Identifier: Apache-2.0
"""What is decided before a scenario runs: shares of connections, stencils, templates, requests."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import wire
from bench.cluster import Address
from bench.dialect import Dialect, Topic, nobody
from bench.filling import Filling, Stencil
from bench.kafka import KAFKA_VERSION, POM
from bench.scenarios import SHAPES, offsets_of, share_out
from bench.wire import BadReply

ONE, OTHER = Address("127.0.0.1", 1), Address("127.0.0.1", 2)
TOPIC = Topic("bench", None, 100)
DIALECT = Dialect({"OffsetCommit": 9, "OffsetFetch": 9})


@given(st.lists(st.sampled_from([ONE, OTHER]), min_size=1, max_size=60), st.integers(1, 40))
def test_every_group_gets_a_connection_to_its_coordinator(addresses: list[Address], connections: int) -> None:
    coordinators = {f"g{number}": address for number, address in enumerate(addresses)}
    parts = share_out(coordinators, connections)
    assert {group for _address, groups in parts for group in groups} == set(coordinators)
    assert all(groups and {coordinators[group] for group in groups} == {address} for address, groups in parts)
    assert abs(len(parts) - connections) <= 1


def test_one_coordinator_gets_exactly_the_connections_asked_for() -> None:
    assert len(share_out({"g": ONE}, 16)) == 16


def test_every_scenario_fits_the_topic() -> None:
    assert all(shape.partitions <= 100 for shape in SHAPES.values())


@given(st.integers(0, 9_999), st.integers(0, 9_999))
def test_a_stencil_cuts_what_the_codec_encodes(first: int, second: int) -> None:
    filling = Filling(10_000, 5)
    names = filling.names()
    calls = [DIALECT.commit(TOPIC, nobody(names[n]), filling.by_partition(n)) for n in (first, second)]
    stencil = Stencil(calls[0].frame, names[first], filling.offsets(first))
    assert stencil.cut(names[second], filling.offsets(second)) == calls[1].frame


def test_a_stencil_refuses_an_image_without_the_offsets() -> None:
    with pytest.raises(ValueError, match="once"):
        Stencil(b"nothing here", "g", [1])


def test_offsets_differ_between_groups_and_partitions() -> None:
    filling = Filling(50, 100)
    assert len({offset for number in range(50) for offset in filling.offsets(number)}) == 50 * 100
    assert offsets_of(1, 100).keys() == set(range(100))
    assert set(offsets_of(1, 100).values()).isdisjoint(offsets_of(2, 100).values())


def test_error_codes_anywhere_in_a_reply_are_found() -> None:
    response = wire.OFFSET_COMMIT.response
    part = response.OffsetCommitResponseTopic.OffsetCommitResponsePartition
    partitions = [part(partition_index=0, error_code=0), part(partition_index=1, error_code=25)]
    topics = [response.OffsetCommitResponseTopic(name="bench", partitions=partitions)]
    message = response(version=9, throttle_time_ms=0, topics=topics)
    assert wire.error_codes(message) == {25}
    with pytest.raises(BadReply, match="UNKNOWN_MEMBER_ID") as caught:
        wire.refuse_errors(wire.OFFSET_COMMIT, message)
    assert not caught.value.transient


@pytest.mark.parametrize("size", range(20))
def test_a_reply_that_is_cut_off_is_no_good_reply(size: int) -> None:
    whole = (
        struct.pack(">i", 1) + b"\0" + struct.pack(">i", 0) + b"\x02\x06bench\x02" + b"\0" * 4 + b"\0\0\0\0\0"
    )
    DIALECT.check_commit(TOPIC, [0], whole)
    with pytest.raises(BadReply):
        DIALECT.check_commit(TOPIC, [0], whole[:size])


def test_a_commit_reply_must_confirm_what_was_asked() -> None:
    whole = (
        struct.pack(">i", 1) + b"\0" + struct.pack(">i", 0) + b"\x02\x06bench\x02" + b"\0" * 4 + b"\0\0\0\0\0"
    )
    for partitions in ([], [1], [0, 1]):
        with pytest.raises(BadReply, match="asked for"):
            DIALECT.check_commit(TOPIC, partitions, whole)
    with pytest.raises(BadReply, match="asked for"):
        DIALECT.check_commit(TOPIC._replace(name="other"), [0], whole)


def test_an_api_that_the_server_lacks_is_named() -> None:
    with pytest.raises(BadReply, match="Heartbeat"):
        DIALECT.version(wire.HEARTBEAT)


@pytest.mark.parametrize("text", ["", "localhost", ":9092", "host:", "host:x"])
def test_an_address_needs_a_host_and_a_port(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Address.parse(text)


def test_addresses() -> None:
    assert Address.parse("[::1]:9092") == ("::1", 9092)
    assert str(Address.parse("host:1")) == "host:1"


def test_kafka_is_the_one_that_the_tests_use() -> None:
    assert f"<kafka.version>{KAFKA_VERSION}</kafka.version>" in POM.read_text()
