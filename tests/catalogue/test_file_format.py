# SPDX-License-Identifier: Apache-2.0
"""The catalogue's file: what is written is read again, and anything else is refused with its place."""

import uuid
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.file_format import CorruptCatalogue, decode, encode
from coordinator.catalogue.ids import from_text, random_topic_id
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key
from coordinator.catalogue.topic import Topic
from storage.properties import encode_uuid

PATH = Path("data/catalogue.json")
GOLDEN = b"""\
{
  "version": 1,
  "offsets_topic": {
    "id": "AAAAAAAAAAAAAAAAAAAAmQ",
    "partitions": 50
  },
  "topics": [
    {
      "name": "audit",
      "id": "AAAAAAAAAAAAAAAAAAAA_w",
      "partitions": 1
    },
    {
      "name": "orders",
      "id": "AAAAAAAAAAAAAAAAAAAAew",
      "partitions": 12,
      "configs": {
        "retention.ms": " 5 "
      }
    }
  ]
}
"""


def golden_catalogue() -> Catalogue:
    offsets_topic = Topic(name=OFFSETS_TOPIC, id=bytes(15) + b"\x99", partitions=50)
    orders = Topic(name="orders", id=bytes(15) + b"\x7b", partitions=12, configs={"retention.ms": " 5 "})
    return Catalogue(offsets_topic, [orders, Topic(name="audit", id=bytes(15) + b"\xff", partitions=1)])


def test_the_file_of_version_1_stays_readable() -> None:
    assert decode(GOLDEN, PATH) == golden_catalogue()


def test_the_file_looks_as_documented() -> None:
    assert encode(golden_catalogue()) == GOLDEN


@given(
    st.lists(
        st.tuples(
            st.text(alphabet="ab._-", min_size=3, max_size=6).filter(lambda name: name.strip(".")),
            st.binary(min_size=16, max_size=16),
            st.integers(1, 2**31 - 1),
            st.dictionaries(st.sampled_from(["retention.ms", "flush.ms"]), st.integers(0, 9).map(str)),
        ),
        unique_by=(lambda each: collision_key(each[0]), lambda each: each[1]),
        max_size=8,
    ),
    st.integers(1, 1000),
)
def test_what_is_written_is_read_again(
    topics: list[tuple[str, bytes, int, dict[str, str]]], count: int
) -> None:
    offsets_topic = Topic(name=OFFSETS_TOPIC, id=b"none of these id", partitions=count)
    catalogue = Catalogue(
        offsets_topic,
        (Topic(name=name, id=id_, partitions=n, configs=configs) for name, id_, n, configs in topics),
    )
    assert decode(encode(catalogue), PATH) == catalogue


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"version": 1', b'"version": 2', "its version is 2, but this build reads version 1"),
        (b'"version": 1,', b"", "missing required field `version`"),
        (
            b'"partitions": 12',
            b'"partitions": "12"',
            "Expected `int`, got `str` - at `$.topics[1].partitions`",
        ),
        (b'"partitions": 12', b'"partitions": 0', "`int` >= 1 - at `$.topics[1].partitions`"),
        (b'"partitions": 12', b'"count": 12', "unknown field `count` - at `$.topics[1]`"),
        (b'"partitions": 50', b'"partitions": 0', "at `$.offsets_topic.partitions`"),
        (b'"orders"', b'"or ders"', "Topic name is invalid: 'or ders'"),
        (b'"orders"', b'"or ders"', "at `$.topics[1]`"),
        (b'"orders"', b'"audit"', "topics 'audit' and 'audit' cannot exist side by side"),
        (b'"orders"', b'"__consumer.offsets"', "cannot exist side by side"),
        (b"AAew", b"AA_w", "topics 'audit' and 'orders' have the same id"),
        (b"AAew", b"AAe", "'AAAAAAAAAAAAAAAAAAAAe' is not an id"),
        (b"AAew", b"AA!!", "is not an id: an id of 15 bytes - at `$.topics[1].id`"),
        (b"AAew", b"AAex", "is not an id of 22 characters in base64 - at `$.topics[1].id`"),
        (b"retention.ms", b"retention", "Unknown topic config name: retention - at `$.topics[1]`"),
        (b'" 5 "', b'"five"', "Not a number of type LONG - at `$.topics[1]`"),
        (b'"orders"', b'"\xff"', "at byte 232: this is not UTF-8"),
    ],
)
def test_a_damaged_file_is_told_with_its_name_and_place(old: bytes, new: bytes, message: str) -> None:
    assert GOLDEN.count(old) >= 1
    with pytest.raises(CorruptCatalogue) as caught:
        decode(GOLDEN.replace(old, new), PATH)
    told = str(caught.value)
    assert told.startswith("data/catalogue.json")
    assert message.lower() in told.lower()
    assert "\n" not in told


def test_text_that_is_no_json_is_told_with_its_byte() -> None:
    damaged = GOLDEN.replace(b'"offsets_topic": {', b'"offsets_topic": {,')
    with pytest.raises(CorruptCatalogue) as caught:
        decode(damaged, PATH)
    assert caught.value.position == damaged.index(b"{,") + 1
    assert f"at byte {caught.value.position}" in str(caught.value)


@pytest.mark.parametrize("cut", range(0, len(GOLDEN) - 2, 7))
def test_a_file_that_was_cut_is_refused(cut: int) -> None:
    with pytest.raises(CorruptCatalogue, match=rf"at byte {cut}: Input data was truncated"):
        decode(GOLDEN[:cut], PATH)


@given(st.binary(max_size=200))
def test_garbage_is_refused_and_nothing_else_happens(data: bytes) -> None:
    with pytest.raises(CorruptCatalogue):
        decode(data, PATH)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_other_json_is_refused(value: object) -> None:
    with pytest.raises(CorruptCatalogue):
        decode(msgspec.json.encode(value), PATH)


@given(st.binary(min_size=16, max_size=16))
def test_ids_have_kafkas_text(topic_id: bytes) -> None:
    assert from_text(encode_uuid(topic_id)) == topic_id


def test_a_new_id_is_not_reserved_and_starts_with_no_dash() -> None:
    candidates = [
        uuid.UUID(int=0),
        uuid.UUID(int=1),
        uuid.UUID(int=99),
        uuid.UUID(bytes=b"\xf8" + bytes(15)),
        uuid.UUID(int=123 << 64),
    ]
    assert encode_uuid(candidates[3].bytes).startswith("-")
    assert random_topic_id(iter(candidates).__next__) == candidates[4].bytes
    assert random_topic_id() != random_topic_id()
