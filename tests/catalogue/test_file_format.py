# SPDX-License-Identifier: Apache-2.0
"""The catalogue's file: what is written is read again, and anything else is refused with its place."""

import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes, ConfigsChanged, PartitionsAdded
from coordinator.catalogue.deletions import NOTHING, StoredDeletions
from coordinator.catalogue.errors import CorruptCatalogue
from coordinator.catalogue.file_format import (
    decode,
    decode_partition_count,
    encode_changes,
    encode_file_in_parts,
    encode_finished_drops,
)
from coordinator.catalogue.ids import from_text, random_topic_id
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key
from coordinator.catalogue.topic import Topic
from protocol.newtypes import Partition
from storage.disk.properties import encode_uuid
from tests.support.ids import new_topic_id

PATH = Path("data/catalogue.json")
VERSION_1 = b'{\n  "version": 1,\n  "offsets_topic": {"id": "AAAAAAAAAAAAAAAAAAAAmQ", "partitions": 50}\n}\n'


def golden_catalogue() -> Catalogue:
    offsets_topic = Topic(name=OFFSETS_TOPIC, id=bytes(15) + b"\x99", partitions=50)
    orders = Topic(name="orders", id=bytes(15) + b"\x7b", partitions=12, configs={"retention.ms": " 5 "})
    return Catalogue(offsets_topic, [orders, Topic(name="audit", id=bytes(15) + b"\xff", partitions=1)])


GOLDEN = b"""\
{"crc":"CRC_0","version":3,"offsets_topic":{"id":"AAAAAAAAAAAAAAAAAAAAmQ","partitions":50},"lines":1}
{"crc":"CRC_1","created":[{"name":"orders","id":"AAAAAAAAAAAAAAAAAAAAew","partitions":12,\
"configs":{"retention.ms":" 5 "}},{"name":"old","id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":1}]}
{"crc":"CRC_2","grown":[{"id":"AAAAAAAAAAAAAAAAAAAAAQ","before":1,"partitions":3}]}
{"crc":"CRC_3","deleted":["AAAAAAAAAAAAAAAAAAAAAQ"],"created":[{"name":"audit","id":"AAAAAAAAAAAAAAAAAAAA_w",\
"partitions":1}]}
{"crc":"CRC_4","dropped":[{"upto":1,"partitions":[0,2]}]}
"""


def with_checksums(text: bytes) -> bytes:
    """Put the right checksum into every line that begins as a line should."""

    def line_with_checksum(line: bytes) -> bytes:
        begin, comma, body = line.partition(b",")
        return b'{"crc":"%08x",%b' % (crc32c(body), body) if begin.startswith(b'{"crc":"') and comma else line

    return b"\n".join(map(line_with_checksum, text.split(b"\n")))


def whole(data: bytes) -> Catalogue:
    found = decode(data, PATH)
    assert not found.is_torn
    assert found.end == len(data)
    return found.catalogue


@pytest.mark.parametrize("read", [decode, decode_partition_count])
def test_a_file_of_version_1_is_refused(read: Callable[[bytes, Path], object]) -> None:
    message = "catalogue.json at byte 0: its version is 1, but this build reads versions 2 and 3"
    with pytest.raises(CorruptCatalogue, match=message):
        read(VERSION_1, PATH)


def test_the_file_of_version_2_stays_readable() -> None:
    """It did not say where offsets were dropped: nothing of what it deletes is looked for any more."""
    old = GOLDEN.replace(b'"version":3', b'"version":2').split(b'{"crc":"CRC_4"')[0]
    data = with_checksums(old)
    assert whole(data) == golden_catalogue()
    assert decode_partition_count(data, PATH) == 50
    found = decode(data, PATH)
    assert found.made_bytes == 0, "it is made anew at the next start"
    assert found.deletions.to_stored_deletions() == NOTHING


def test_the_file_of_version_3_stays_readable() -> None:
    data = with_checksums(GOLDEN)
    assert whole(data) == golden_catalogue()
    assert decode_partition_count(data, PATH) == 50
    assert decode(data, PATH).deletions.to_stored_deletions() == StoredDeletions(
        0, (["old"],), {1: [Partition(0), Partition(2)]}
    )


def test_what_a_new_file_says_of_deletions_is_read_again() -> None:
    dropped = {9: [Partition(1), Partition(4)], 609: [Partition(2)]}
    kept = StoredDeletions(7, [["a", "b"], [f"t{number}" for number in range(600)]], dropped)
    golden = golden_catalogue()
    data = b"".join(encode_file_in_parts(golden.offsets_topic, golden.snapshot_topics(), kept))
    found = decode(data, PATH)
    assert (found.catalogue, found.made_bytes, found.is_torn) == (golden, len(data), False)
    assert found.deletions.undropped_topics(Partition(2)) == []
    assert found.deletions.undropped_topics(Partition(1)) == kept.gone[1]
    assert found.deletions.undropped_topics(Partition(0)) == [*kept.gone[0], *kept.gone[1]]
    assert found.deletions.number == 609
    assert all(len(line) < 64 * 1024 for line in data.split(b"\n"))


def test_the_file_looks_as_documented() -> None:
    golden = golden_catalogue()
    orders, audit = golden.get("orders"), golden.get("audit")
    assert orders is not None
    assert audit is not None
    old = Topic(name="old", id=bytes(15) + b"\x01", partitions=1)
    made = b"".join(encode_file_in_parts(golden.offsets_topic, [orders, old]))
    made += encode_changes(Changes(grown=[PartitionsAdded(old.id, 1, 3)]))
    made += encode_changes(Changes(deleted=[old.id], created=[audit]))
    made += encode_finished_drops({1: [Partition(0), Partition(2)]})
    assert made == with_checksums(GOLDEN)


def test_new_settings_are_a_line_of_their_own() -> None:
    golden = golden_catalogue()
    orders = golden.get("orders")
    assert orders is not None
    changed = ConfigsChanged(orders.id, orders.configs, {"flush.ms": "1"})
    data = b"".join(encode_file_in_parts(golden.offsets_topic, [orders])) + encode_changes(
        Changes(configured=[changed])
    )
    found = whole(data).get("orders")
    assert found is not None
    assert found.configs == {"flush.ms": "1"}
    for bad in (
        ConfigsChanged(orders.id, {"flush.ms": "9"}, {}),
        ConfigsChanged(orders.id, orders.configs, {"nope": "1"}),
    ):
        with pytest.raises(CorruptCatalogue, match=r"other settings|Unknown topic config name"):
            whole(data[: data.rindex(b'{"crc"')] + encode_changes(Changes(configured=[bad])))


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
    assert whole(b"".join(encode_file_in_parts(offsets_topic, catalogue.snapshot_topics()))) == catalogue


@pytest.mark.parametrize("data", [b"", b"{", b'{"version": 2}', b"\0" * 100, b"\xff"])
def test_what_is_no_catalogue_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptCatalogue, match=r"catalogue\.json at byte 0: this is no line of a catalogue"):
        decode(data, PATH)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (b'"version":3', b'"version":4', 0, "its version is 4, but this build reads versions 2 and 3"),
        (b'"lines":1', b'"lines":5', None, "the file was cut: 4 of 5 lines are there"),
        (b'"upto":1', b'"upto":2', 4, "there were no 2 topics to be deleted"),
        (b"[0,2]", b"[0,50]", 4, "there is no partition 50"),
        (b'"lines":1', b'"rows":1', 0, "unknown field `rows`"),
        (b'"partitions":12', b'"partitions":0', 1, "`int` >= 1 - at `$.created[0].partitions`"),
        (b'"orders"', b'"or ders"', 1, "Topic name is invalid: 'or ders'"),
        (b"retention.ms", b"retention", 1, "Unknown topic config name: retention"),
        (b"AAew", b"AAe", 1, "'AAAAAAAAAAAAAAAAAAAAe' is not an id"),
        (b'"old"', b'"orders"', 1, "topics 'orders' and 'orders' cannot exist side by side"),
        (b'"before":1', b'"before":2', 2, "topic 'old' has 1 partitions, and not 2"),
        (b'["AAAAAAAAAAAAAAAAAAAAAQ"]', b'["AAAAAAAAAAAAAAAAAAAABQ"]', 3, "there is no topic with the id"),
        (b'"deleted"', b'"removed"', 3, "unknown field `removed`"),
        (b'{"crc":"CRC_2"', b'["crc":"CRC_2"', 2, "this is no line of a catalogue"),
    ],
)
def test_a_damaged_line_is_told_with_its_name_and_place(
    old: bytes, new: bytes, line: int | None, message: str
) -> None:
    assert GOLDEN.count(old) >= 1
    data = with_checksums(GOLDEN.replace(old, new))
    with pytest.raises(CorruptCatalogue) as caught:
        decode(data, PATH)
    starts = [0, *(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))]
    assert caught.value.position == (len(data) if line is None else starts[line])
    assert message.lower() in str(caught.value).lower()


@pytest.mark.parametrize("position", range(0, len(with_checksums(GOLDEN)), 3))
def test_a_byte_that_changed_is_never_read_as_other_topics(position: int) -> None:
    data = bytearray(with_checksums(GOLDEN))
    data[position] ^= 0x04
    try:
        found = decode(bytes(data), PATH)
    except CorruptCatalogue:
        return
    # The end of the last line is all that can go without being told from a torn write.
    assert position == len(data) - 1
    assert found.is_torn


def test_a_tail_that_was_not_written_to_its_end_is_cut() -> None:
    data = with_checksums(GOLDEN)
    lines = data.splitlines(keepends=True)
    made = len(lines[0] + lines[1])
    for cut in range(made + 1, len(data)):
        found = decode(data[:cut], PATH)
        ends = [made, made + len(lines[2]), made + len(lines[2] + lines[3]), len(data)]
        assert found.end == max(end for end in ends if end <= cut)
        assert found.is_torn == (cut not in ends)
        assert found.made_bytes == made
        zeros = decode(data[:cut] + bytes(len(data) - cut), PATH)
        assert (zeros.end, zeros.is_torn) == (found.end, True)
    holes = lines[0] + lines[1] + lines[2][:20] + bytes(20) + lines[2][40:]
    assert decode(holes, PATH).is_torn
    with pytest.raises(CorruptCatalogue, match="checksum is wrong"):
        decode(holes + lines[3], PATH)


@pytest.mark.parametrize("page_bytes", [4_096, 16_384])
def test_pages_of_one_change_reach_the_disk_in_any_order(page_bytes: int) -> None:
    """Those that a power loss has kept away are zeros; a change that came later shows that all of it was there."""
    lines = with_checksums(GOLDEN).splitlines(keepends=True)
    made = lines[0] + lines[1]
    topics = [
        Topic(name=f"topic-{number}", id=uuid.UUID(int=2**100 + number).bytes, partitions=1)
        for number in range(1_001)
    ]
    pieces = list(Changes(created=topics[1:]).split_into_pieces())
    assert len(pieces) == 4
    change = b"".join(
        encode_changes(piece, continues_line_before=number > 0) for number, piece in enumerate(pieces)
    )
    later = encode_changes(Changes(created=topics[:1]))
    for start in range(0, len(change), page_bytes):
        end = min(start + page_bytes, len(change))
        torn = made + change[:start] + bytes(end - start) + change[end:]
        found = decode(torn, PATH)
        assert found.is_torn
        assert found.end <= len(made) + start
        if end < len(change):  # and the zeros end in a line of this change
            with pytest.raises(CorruptCatalogue):
                decode(torn + later, PATH)


@pytest.mark.parametrize(
    "cut", range(1, len(b"".join(with_checksums(GOLDEN).splitlines(keepends=True)[:2])), 5)
)
def test_a_file_that_is_shorter_than_it_was_made_is_refused(cut: int) -> None:
    with pytest.raises(CorruptCatalogue):
        decode(with_checksums(GOLDEN)[:cut], PATH)


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
    assert new_topic_id() != new_topic_id()
