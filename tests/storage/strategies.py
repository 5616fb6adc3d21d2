# SPDX-License-Identifier: Apache-2.0
"""What the storage tests draw: records of every kind, and batches of them."""

from hypothesis import strategies as st

from protocol.newtypes import GroupId, LeaderEpoch, Offset
from storage.format.batch import BatchBuilder
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    UnknownRecord,
)

int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
names = st.text(st.characters(codec="utf-8"), max_size=40)
long_names = st.one_of(names, st.integers(100, 9000).map("x".__mul__), st.just("ü" * 16_383))
blobs = st.one_of(st.binary(max_size=40), st.integers(100, 9000).map(bytes))

offsets = st.builds(
    OffsetAndMetadata,
    offset=int64s,
    leader_epoch=int32s,
    metadata=long_names,
    commit_timestamp=int64s,
    # -1 is how version 1 writes "none".
    expire_timestamp=st.none() | int64s.filter((-1).__ne__),
    topic_id=st.none() | st.binary(min_size=16, max_size=16).filter(any),
)
members = st.builds(
    MemberValue,
    member_id=names,
    group_instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout=int32s,
    session_timeout=int32s,
    subscription=blobs,
    assignment=blobs,
)
groups = st.builds(
    GroupMetadataValue,
    protocol_type=names,
    generation=int32s,
    protocol=st.none() | names,
    leader=st.none() | names,
    current_state_timestamp=int64s,
    members=st.lists(members, max_size=4).map(tuple),
)

few_names = st.sampled_from(["", "a", "topic", "grüppe", "x" * 200])
offset_records = st.builds(
    OffsetCommitRecord, group=few_names | names, topic=few_names, partition=int32s, value=st.none() | offsets
)
group_records = st.builds(GroupMetadataRecord, group=long_names, value=st.none() | groups)


@st.composite
def unknown_records(draw: st.DrawFn) -> UnknownRecord:
    """A record with a key of a kind that is not ours."""
    version = draw(st.integers(3, 32_767) | st.integers(-32_768, -1))
    key = version.to_bytes(2, "big", signed=True) + draw(st.binary(max_size=30))
    return UnknownRecord(version, key, draw(st.none() | blobs))


records: st.SearchStrategy[Record] = st.one_of(offset_records, group_records, unknown_records())


def commit(label: int, count: int = 1, *, group: str = "group") -> list[Record]:
    """Records of one commit that can be told from those of every other label."""
    return [
        OffsetCommitRecord(
            GroupId(group), "topic", partition, OffsetAndMetadata(Offset(label), -1, "", 1_700_000_000_000)
        )
        for partition in range(count)
    ]


def batch(label: int, base_offset: int, count: int = 1, *, metadata_bytes: int = 0) -> bytes:
    """One batch at `base_offset`, of records that carry `label` as their offset."""
    builder = BatchBuilder(1 << 24)
    value = OffsetAndMetadata(Offset(label), -1, "m" * metadata_bytes, 1_700_000_000_000)
    builder.append_in_one_batch(
        [OffsetCommitRecord(GroupId("group"), "topic", partition, value) for partition in range(count)]
    )
    (built,) = builder.build(Offset(base_offset), LeaderEpoch(0), 1_700_000_000_000)
    return built
