# SPDX-License-Identifier: Apache-2.0
"""Keys and values of records, against themselves and against bytes that Kafka 4.3 wrote."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.compiled_struct import copy_with_fields
from protocol.newtypes import GroupId, MemberId, Offset
from storage.errors import CorruptRecord, RecordTooLarge
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    UnknownRecord,
    decode_group_metadata,
    decode_key_and_value,
    decode_offset,
    encode_group_metadata,
    encode_offset_value,
    encode_record_key,
    encode_record_value,
)
from tests.storage import strategies

versions = st.integers(0, 4)


def as_version_keeps(value: OffsetAndMetadata, version: int) -> OffsetAndMetadata:
    """What is left of an offset after it was written in `version`."""
    return copy_with_fields(
        value,
        leader_epoch=value.leader_epoch if version >= 3 else -1,
        expire_timestamp=value.expire_timestamp if version == 1 else None,
        topic_id=value.topic_id if version == 4 else None,
    )


@given(strategies.offsets, versions)
def test_an_offset_reads_back_as_its_version_keeps_it(value: OffsetAndMetadata, version: int) -> None:
    assert decode_offset(encode_offset_value(value, version)) == as_version_keeps(value, version)


@given(strategies.groups, versions)
def test_a_group_reads_back_as_its_version_keeps_it(value: GroupMetadataValue, version: int) -> None:
    members = tuple(
        msgspec.structs.replace(
            member,
            group_instance_id=member.group_instance_id if version >= 3 else None,
            rebalance_timeout=member.rebalance_timeout if version >= 1 else -1,
        )
        for member in value.members
    )
    timestamp = value.current_state_timestamp if version >= 2 else -1
    expected = msgspec.structs.replace(value, members=members, current_state_timestamp=timestamp)
    assert decode_group_metadata(encode_group_metadata(value, version)) == expected


@given(strategies.records, st.sampled_from([3, 4]))
def test_a_record_reads_back_from_its_key_and_value(record: Record, version: int) -> None:
    expected = record
    if isinstance(record, OffsetCommitRecord) and record.value is not None:
        kept_in = 1 if record.value.expire_timestamp is not None else version
        expected = OffsetCommitRecord(
            record.group, record.topic, record.partition, as_version_keeps(record.value, kept_in)
        )
    assert decode_key_and_value(encode_record_key(record), encode_record_value(record, version)) == expected


@given(st.none() | st.binary(max_size=80), st.none() | st.binary(max_size=80))
def test_garbage_is_refused_or_read_but_nothing_else(key: bytes | None, value: bytes | None) -> None:
    with suppress(CorruptRecord):
        decode_key_and_value(key, value)


@given(strategies.offsets | strategies.groups, versions)
def test_a_value_cut_anywhere_is_refused(value: OffsetAndMetadata | GroupMetadataValue, version: int) -> None:
    if isinstance(value, OffsetAndMetadata):
        whole = encode_offset_value(value, version)
        for cut in range(len(whole))[:200]:
            with pytest.raises(CorruptRecord):
                decode_offset(whole[:cut])
    else:
        whole = encode_group_metadata(value, version)
        for cut in range(len(whole))[:200]:
            with pytest.raises(CorruptRecord):
                decode_group_metadata(whole[:cut])


def test_bytes_after_the_last_field_are_ignored_as_kafka_does() -> None:
    value = OffsetAndMetadata(Offset(1), 2, "m", 3)
    assert decode_offset(encode_offset_value(value) + b"more") == value
    key = encode_record_key(OffsetCommitRecord(GroupId("g"), "t", 1, None))
    assert decode_key_and_value(key + b"more", None) == OffsetCommitRecord(GroupId("g"), "t", 1, None)


def test_tagged_fields_of_a_later_version_are_passed_over() -> None:
    whole = encode_offset_value(OffsetAndMetadata(Offset(1), 2, "m", 3, topic_id=b"i" * 16), 4)
    assert whole.endswith(b"\x01\x00\x10" + b"i" * 16)
    with_unknown = whole[:-19] + b"\x02\x00\x10" + b"i" * 16 + b"\x07\x02??"
    assert decode_offset(with_unknown) == OffsetAndMetadata(Offset(1), 2, "m", 3, topic_id=b"i" * 16)


def test_key_version_0_names_an_offset_too() -> None:
    key = b"\x00\x00" + encode_record_key(OffsetCommitRecord(GroupId("g"), "t", 7, None))[2:]
    assert decode_key_and_value(key, None) == OffsetCommitRecord(GroupId("g"), "t", 7, None)


def test_an_expiry_of_its_own_is_written_as_version_1() -> None:
    record = OffsetCommitRecord(
        GroupId("g"), "t", 0, OffsetAndMetadata(Offset(1), 5, "", 2, expire_timestamp=3)
    )
    for version in (3, 4):
        value = encode_record_value(record, version)
        assert value is not None
        assert value[:2] == b"\x00\x01"


def test_names_that_are_not_utf8_become_what_java_makes_of_them() -> None:
    key = b"\x00\x02\x00\x03a\xffb"
    assert decode_key_and_value(key, None) == GroupMetadataRecord(GroupId("a\ufffdb"), None)


@pytest.mark.parametrize("version", [5, 99, -1])
def test_a_value_of_an_unknown_version_is_refused(version: int) -> None:
    value = version.to_bytes(2, "big", signed=True) + bytes(100)
    with pytest.raises(CorruptRecord, match=f"version {version} "):
        decode_key_and_value(encode_record_key(OffsetCommitRecord(GroupId("g"), "t", 0, None)), value)
    with pytest.raises(CorruptRecord, match=f"version {version} "):
        decode_key_and_value(encode_record_key(GroupMetadataRecord(GroupId("g"), None)), value)


def test_a_kind_of_key_that_is_not_known_is_kept_as_it_is() -> None:
    record = decode_key_and_value(b"\x00\x03group", b"value")
    assert record == UnknownRecord(3, b"\x00\x03group", b"value")
    assert (encode_record_key(record), encode_record_value(record)) == (b"\x00\x03group", b"value")


@pytest.mark.parametrize("group", ["x" * 32_768, "ü" * 16_384])
def test_a_name_that_its_field_cannot_hold_is_refused(group: str) -> None:
    with pytest.raises(RecordTooLarge, match="32768 bytes"):
        encode_record_key(GroupMetadataRecord(GroupId(group), None))


def test_an_array_longer_than_the_bytes_that_follow_is_refused_at_once() -> None:
    whole = encode_group_metadata(GroupMetadataValue("", 0, None, None, 0, ()))
    with pytest.raises(CorruptRecord, match="2147483647 elements"):
        decode_group_metadata(whole[:-4] + b"\x7f\xff\xff\xff")


# ------------------------------------------------------------------ bytes from Kafka 4.3.0
# Made with the generated classes of kafka-group-coordinator-4.3.0.jar and
# MessageUtil.toVersionPrefixedByteBuffer.

KAFKA_OFFSETS = {
    0: "00000000011f71fb04cb00056dc3a974610000018bcfe5687b",
    1: "00010000011f71fb04cb00056dc3a974610000018bcfe5687b0000018bcfe58f0f",
    2: "00020000011f71fb04cb00056dc3a974610000018bcfe5687b",
    3: "00030000011f71fb04cb0000000700056dc3a974610000018bcfe5687b",
    4: "00040000011f71fb04cb00000007066dc3a974610000018bcfe5687b010010000102030405060708090a0b0c0d0e0f",
}
OFFSET = OffsetAndMetadata(Offset(1234567890123), 7, "méta", 1700000000123, 1700000009999, bytes(range(16)))

KAFKA_GROUPS = {
    0: "00000008636f6e73756d657200000005000572616e676500086d656d6265722d310000000200086d656d6265722d31"
    "0006636c69656e74000a2f3132372e302e302e310000afc8000000030102030000000000086d656d6265722d32000000"
    "022f6800001770000000000000000109",
    1: "00010008636f6e73756d657200000005000572616e676500086d656d6265722d310000000200086d656d6265722d31"
    "0006636c69656e74000a2f3132372e302e302e31000493e00000afc8000000030102030000000000086d656d6265722d"
    "32000000022f680000ea6000001770000000000000000109",
    2: "00020008636f6e73756d657200000005000572616e676500086d656d6265722d310000018bcfe569c8000000020008"
    "6d656d6265722d310006636c69656e74000a2f3132372e302e302e31000493e00000afc8000000030102030000000000"
    "086d656d6265722d32000000022f680000ea6000001770000000000000000109",
    3: "00030008636f6e73756d657200000005000572616e676500086d656d6265722d310000018bcfe569c8000000020008"
    "6d656d6265722d31ffff0006636c69656e74000a2f3132372e302e302e31000493e00000afc800000003010203000000"
    "0000086d656d6265722d320006737461746963000000022f680000ea6000001770000000000000000109",
    4: "000409636f6e73756d6572000000050672616e6765096d656d6265722d310000018bcfe569c803096d656d6265722d"
    "310007636c69656e740b2f3132372e302e302e31000493e00000afc8040102030100096d656d6265722d320773746174"
    "696301032f680000ea60000017700102090000",
}
GROUP = GroupMetadataValue(
    "consumer",
    5,
    "range",
    MemberId("member-1"),
    1700000000456,
    (
        MemberValue(MemberId("member-1"), None, "client", "/127.0.0.1", 300000, 45000, b"\x01\x02\x03", b""),
        MemberValue(MemberId("member-2"), "static", "", "/h", 60000, 6000, b"", b"\x09"),
    ),
)
KAFKA_EMPTY_GROUPS = {
    0: "0000000000000000ffffffff00000000",
    1: "0001000000000000ffffffff00000000",
    2: "0002000000000000ffffffffffffffffffffffff00000000",
    3: "0003000000000000ffffffffffffffffffffffff00000000",
    4: "000401000000000000ffffffffffffffff0100",
}


@pytest.mark.parametrize("version", range(5))
def test_values_are_byte_for_byte_what_kafka_writes(version: int) -> None:
    assert encode_offset_value(OFFSET, version).hex() == KAFKA_OFFSETS[version]
    assert encode_group_metadata(GROUP, version).hex() == KAFKA_GROUPS[version]
    empty = GroupMetadataValue("", 0, None, None, -1, ())
    assert encode_group_metadata(empty, version).hex() == KAFKA_EMPTY_GROUPS[version]


def test_keys_are_byte_for_byte_what_kafka_writes() -> None:
    offset_key = encode_record_key(OffsetCommitRecord(GroupId("grüppe"), "topic", 11, None))
    assert offset_key.hex() == "000100076772c3bc7070650005746f7069630000000b"
    assert encode_record_key(GroupMetadataRecord(GroupId("grüppe"), None)).hex() == "000200076772c3bc707065"
