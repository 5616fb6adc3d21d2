# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""OffsetCommit v2-v10: the request and the response, both ways."""

from collections.abc import Callable, Generator
from struct import Struct, error
from typing import Final

from protocol.apis import ApiKey
from protocol.codec import ApiSchema, Codec
from protocol.compiled_struct import EMPTY, FieldsValue
from protocol.errors import Truncated
from protocol.fixed_integers import int32_at
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, MemberId, Offset
from protocol.rows import EncodedRows, read_rows_if_uniform
from protocol.wire import (
    NULL_INT16,
    PACK_INT32,
    UVARINT,
    ZERO_UUID,
    bad_count_error,
    bad_length_error,
    item_limit_error,
    pack_compact_string,
    pack_int32,
    pack_partition_error,
    pack_string,
    pack_tagged_partition_error,
    pack_uvarint,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    text_at,
)

_UNPACK_16sB: Final[Callable[[bytes, int], tuple[bytes, int]]] = Struct(">16sB").unpack_from
_UNPACK_h: Final[Callable[[bytes, int], tuple[int]]] = Struct(">h").unpack_from
_UNPACK_i: Final[Callable[[bytes, int], tuple[int]]] = Struct(">i").unpack_from
_UNPACK_ih: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ih").unpack_from
_UNPACK_ii: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ii").unpack_from
_UNPACK_iqh: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">iqh").unpack_from
_UNPACK_iqiB: Final[Callable[[bytes, int], tuple[int, int, int, int]]] = Struct(">iqiB").unpack_from
_UNPACK_iqih: Final[Callable[[bytes, int], tuple[int, int, int, int]]] = Struct(">iqih").unpack_from
_UNPACK_qi: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">qi").unpack_from
_PACK_16s: Final[Callable[..., bytes]] = Struct(">16s").pack
_PACK_iq: Final[Callable[..., bytes]] = Struct(">iq").pack
_PACK_iqh: Final[Callable[..., bytes]] = Struct(">iqh").pack
_PACK_iqi: Final[Callable[..., bytes]] = Struct(">iqi").pack
_PACK_iqiBx: Final[Callable[..., bytes]] = Struct(">iqiBx").pack
_PACK_iqih: Final[Callable[..., bytes]] = Struct(">iqih").pack
_PACK_q: Final[Callable[..., bytes]] = Struct(">q").pack


@mypyc_attr(acyclic=True)
class OffsetCommitRequestPartition(FieldsValue):
    __match_args__: Final = ("partition_index", "committed_offset", "committed_leader_epoch", "commit_timestamp", "committed_metadata",)
    __slots__ = __match_args__

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: Offset = Offset(0),
        committed_leader_epoch: int = -1,
        commit_timestamp: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: Final = partition_index
        self.committed_offset: Final = committed_offset
        self.committed_leader_epoch: Final = committed_leader_epoch
        self.commit_timestamp: Final = commit_timestamp
        self.committed_metadata: Final = committed_metadata


@mypyc_attr(acyclic=True)
class OffsetCommitRequestTopic(FieldsValue):
    __match_args__: Final = ("name", "topic_id", "partitions",)
    __slots__ = ("_partitions", "name", "partition_rows", "topic_id",)

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] = EMPTY,
        partition_rows: EncodedRows | None = None,
    ) -> None:
        self.name: Final = name
        self.topic_id: Final = topic_id
        self._partitions: Final = partitions if partitions is not EMPTY else []
        self.partition_rows = partition_rows

    @property
    def partitions(self) -> list[OffsetCommitRequestPartition]:
        rows = self.partition_rows
        if rows is not None:
            row: tuple[int, int, int]
            for row in rows.unpack("iqi"):
                self._partitions.append(OffsetCommitRequestPartition(row[0], Offset(row[1]), row[2], -1, ""))
            self.partition_rows = None
        return self._partitions


@mypyc_attr(acyclic=True)
class OffsetCommitRequest(FieldsValue):
    __match_args__: Final = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        generation_id_or_member_epoch: int = -1,
        member_id: MemberId = MemberId(""),
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: Final = group_id
        self.generation_id_or_member_epoch: Final = generation_id_or_member_epoch
        self.member_id: Final = member_id
        self.group_instance_id: Final = group_instance_id
        self.retention_time_ms: Final = retention_time_ms
        self.topics: Final = topics if topics is not EMPTY else []


@mypyc_attr(acyclic=True)
class OffsetCommitResponsePartition(FieldsValue):
    __match_args__: Final = ("partition_index", "error_code",)
    __slots__ = __match_args__

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: Final = partition_index
        self.error_code: Final = error_code


@mypyc_attr(acyclic=True)
class OffsetCommitResponseTopic(FieldsValue):
    __match_args__: Final = ("name", "topic_id", "partitions",)
    __slots__ = ("_partitions", "name", "partition_rows", "topic_id",)

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] = EMPTY,
        partition_rows: EncodedRows | None = None,
    ) -> None:
        self.name: Final = name
        self.topic_id: Final = topic_id
        self._partitions: Final = partitions if partitions is not EMPTY else []
        self.partition_rows = partition_rows

    @property
    def partitions(self) -> list[OffsetCommitResponsePartition]:
        rows = self.partition_rows
        if rows is not None:
            row: tuple[int]
            for row in rows.unpack("i"):
                self._partitions.append(OffsetCommitResponsePartition(row[0], 0))
            self.partition_rows = None
        return self._partitions


@mypyc_attr(acyclic=True)
class OffsetCommitResponse(FieldsValue):
    __match_args__: Final = ("throttle_time_ms", "topics",)
    __slots__ = __match_args__

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: Final = throttle_time_ms
        self.topics: Final = topics if topics is not EMPTY else []


def decode_request_v2(buf: bytes, pos: int) -> OffsetCommitRequest:
    size = len(buf)
    items = 0
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        retention_time_ms, n = _UNPACK_qi(buf, pos)
        pos += 12
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 14 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            topic_partitions_rows: EncodedRows | None = None
            if topic_partitions_count >= 10:
                topic_partitions_rows = read_rows_if_uniform(buf, pos, topic_partitions_count, 12, b"\0\0")
                if topic_partitions_rows is not None:
                    pos += len(topic_partitions_rows.data)
                    topic_partitions_count = 0
                    topic_partitions_rows = EncodedRows(topic_partitions_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff'), 16)
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), -1, -1, partition_committed_metadata))
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions, topic_partitions_rows))
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), None, retention_time_ms, topics)


decode_request_v3 = decode_request_v2


decode_request_v4 = decode_request_v2


def decode_request_v5(buf: bytes, pos: int) -> OffsetCommitRequest:
    size = len(buf)
    items = 0
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 14 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            topic_partitions_rows: EncodedRows | None = None
            if topic_partitions_count >= 10:
                topic_partitions_rows = read_rows_if_uniform(buf, pos, topic_partitions_count, 12, b"\0\0")
                if topic_partitions_rows is not None:
                    pos += len(topic_partitions_rows.data)
                    topic_partitions_count = 0
                    topic_partitions_rows = EncodedRows(topic_partitions_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff'), 16)
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), -1, -1, partition_committed_metadata))
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions, topic_partitions_rows))
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), None, -1, topics)


def decode_request_v6(buf: bytes, pos: int) -> OffsetCommitRequest:
    size = len(buf)
    items = 0
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            topic_partitions_rows: EncodedRows | None = None
            if topic_partitions_count >= 10:
                topic_partitions_rows = read_rows_if_uniform(buf, pos, topic_partitions_count, 16, b"\0\0")
                if topic_partitions_rows is not None:
                    pos += len(topic_partitions_rows.data)
                    topic_partitions_count = 0
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqih(buf, pos)
                pos += 18
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions, topic_partitions_rows))
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), None, -1, topics)


def decode_request_v7(buf: bytes, pos: int) -> OffsetCommitRequest:
    size = len(buf)
    items = 0
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos, end)
            pos = end
        elif n == -1:
            group_instance_id = None
        else:
            raise bad_length_error(n, "group_instance_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            topic_partitions_rows: EncodedRows | None = None
            if topic_partitions_count >= 10:
                topic_partitions_rows = read_rows_if_uniform(buf, pos, topic_partitions_count, 16, b"\0\0")
                if topic_partitions_rows is not None:
                    pos += len(topic_partitions_rows.data)
                    topic_partitions_count = 0
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqih(buf, pos)
                pos += 18
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions, topic_partitions_rows))
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), group_instance_id, -1, topics)


def decode_request_v8(buf: bytes, pos: int) -> OffsetCommitRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id_or_member_epoch = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                topic_name = text_at(buf, pos + 1, end)
                pos = end
            else:
                topic_name, pos = read_compact_string(buf, pos, "name")
            n = buf[pos]
            topic_partitions_count = n - 1
            if topic_partitions_count < 127:
                pos += 1
            else:
                topic_partitions_count, pos = read_compact_count(buf, pos)
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            topic_partitions_rows: EncodedRows | None = None
            if topic_partitions_count >= 10:
                topic_partitions_rows = read_rows_if_uniform(buf, pos, topic_partitions_count, 16, b"\1\0")
                if topic_partitions_rows is not None:
                    pos += len(topic_partitions_rows.data)
                    topic_partitions_count = 0
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                pos += 16
                if n == 1:
                    partition_committed_metadata: str | None = ""
                    pos += 1
                elif 0 < n < 128:
                    end = pos + n
                    partition_committed_metadata = text_at(buf, pos + 1, end)
                    pos = end
                elif n == 0:
                    partition_committed_metadata = None
                    pos += 1
                else:
                    partition_committed_metadata, pos = read_compact_nullable_string(buf, pos, "committed_metadata")
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions, topic_partitions_rows))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), group_instance_id, -1, topics)


decode_request_v9 = decode_request_v8


def decode_request_v10(buf: bytes, pos: int) -> OffsetCommitRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id_or_member_epoch = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if not 0 <= topics_count * 18 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            topic_topic_id, n = _UNPACK_16sB(buf, pos)
            pos += 16
            topic_partitions_count = n - 1
            if topic_partitions_count < 127:
                pos += 1
            else:
                topic_partitions_count, pos = read_compact_count(buf, pos)
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            topic_partitions_rows: EncodedRows | None = None
            if topic_partitions_count >= 10:
                topic_partitions_rows = read_rows_if_uniform(buf, pos, topic_partitions_count, 16, b"\1\0")
                if topic_partitions_rows is not None:
                    pos += len(topic_partitions_rows.data)
                    topic_partitions_count = 0
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                pos += 16
                if n == 1:
                    partition_committed_metadata: str | None = ""
                    pos += 1
                elif 0 < n < 128:
                    end = pos + n
                    partition_committed_metadata = text_at(buf, pos + 1, end)
                    pos = end
                elif n == 0:
                    partition_committed_metadata = None
                    pos += 1
                else:
                    partition_committed_metadata, pos = read_compact_nullable_string(buf, pos, "committed_metadata")
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetCommitRequestTopic("", topic_topic_id, topic_partitions, topic_partitions_rows))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), group_instance_id, -1, topics)


def encode_request_v2(message: OffsetCommitRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id_or_member_epoch))
    out.append(pack_string(message.member_id))
    out.append(_PACK_q(message.retention_time_ms))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.committed_metadata == "":
                    out.append(_PACK_iqh(partition.partition_index, partition.committed_offset, 0))
                else:
                    out.append(_PACK_iq(partition.partition_index, partition.committed_offset))
                    out.append(NULL_INT16 if partition.committed_metadata is None else pack_string(partition.committed_metadata))
    return b"".join(out)


encode_request_v3 = encode_request_v2


encode_request_v4 = encode_request_v2


def encode_request_v5(message: OffsetCommitRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id_or_member_epoch))
    out.append(pack_string(message.member_id))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.committed_metadata == "":
                    out.append(_PACK_iqh(partition.partition_index, partition.committed_offset, 0))
                else:
                    out.append(_PACK_iq(partition.partition_index, partition.committed_offset))
                    out.append(NULL_INT16 if partition.committed_metadata is None else pack_string(partition.committed_metadata))
    return b"".join(out)


def encode_request_v6(message: OffsetCommitRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id_or_member_epoch))
    out.append(pack_string(message.member_id))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.committed_metadata == "":
                    out.append(_PACK_iqih(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 0))
                else:
                    out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                    out.append(NULL_INT16 if partition.committed_metadata is None else pack_string(partition.committed_metadata))
    return b"".join(out)


def encode_request_v7(message: OffsetCommitRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    out.append(pack_int32(message.generation_id_or_member_epoch))
    out.append(pack_string(message.member_id))
    out.append(NULL_INT16 if message.group_instance_id is None else pack_string(message.group_instance_id))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.committed_metadata == "":
                    out.append(_PACK_iqih(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 0))
                else:
                    out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                    out.append(NULL_INT16 if partition.committed_metadata is None else pack_string(partition.committed_metadata))
    return b"".join(out)


def encode_request_v8(message: OffsetCommitRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(pack_int32(message.generation_id_or_member_epoch))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    topics = message.topics
    n = len(topics) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for topic in topics:
        raw = topic.name.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            n = topic_partition_rows.count + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00'))
        else:
            topic_partitions = topic.partitions
            n = len(topic_partitions) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for partition in topic_partitions:
                if partition.committed_metadata == "":
                    out.append(_PACK_iqiBx(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 1))
                else:
                    out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                    out.append(b"\0" if partition.committed_metadata is None else pack_compact_string(partition.committed_metadata))
                    out.append(b"\0")
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


encode_request_v9 = encode_request_v8


def encode_request_v10(message: OffsetCommitRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    out.append(pack_int32(message.generation_id_or_member_epoch))
    raw = message.member_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.member_id))
    out.append(b"\0" if message.group_instance_id is None else pack_compact_string(message.group_instance_id))
    topics = message.topics
    n = len(topics) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for topic in topics:
        out.append(_PACK_16s(topic.topic_id))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            n = topic_partition_rows.count + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00'))
        else:
            topic_partitions = topic.partitions
            n = len(topic_partitions) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for partition in topic_partitions:
                if partition.committed_metadata == "":
                    out.append(_PACK_iqiBx(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 1))
                else:
                    out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                    out.append(b"\0" if partition.committed_metadata is None else pack_compact_string(partition.committed_metadata))
                    out.append(b"\0")
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def decode_request_v2_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetCommitRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        retention_time_ms, n = _UNPACK_qi(buf, pos)
        pos += 12
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 14 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), -1, -1, partition_committed_metadata))
                left -= 1
                if not left:
                    left = 500
                    yield
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), None, retention_time_ms, topics)


decode_request_v3_in_steps = decode_request_v2_in_steps


decode_request_v4_in_steps = decode_request_v2_in_steps


def decode_request_v5_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetCommitRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 14 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), -1, -1, partition_committed_metadata))
                left -= 1
                if not left:
                    left = 500
                    yield
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), None, -1, topics)


def decode_request_v6_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetCommitRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqih(buf, pos)
                pos += 18
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
                left -= 1
                if not left:
                    left = 500
                    yield
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), None, -1, topics)


def decode_request_v7_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetCommitRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "group_id")
        generation_id_or_member_epoch, n = _UNPACK_ih(buf, pos)
        pos += 6
        if n >= 0:
            end = pos + n
            member_id = text_at(buf, pos, end)
            pos = end
        else:
            raise bad_length_error(n, "member_id")
        (n,) = _UNPACK_h(buf, pos)
        pos += 2
        if n >= 0:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos, end)
            pos = end
        elif n == -1:
            group_instance_id = None
        else:
            raise bad_length_error(n, "group_instance_id")
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqih(buf, pos)
                pos += 18
                if n >= 0:
                    end = pos + n
                    partition_committed_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_committed_metadata = None
                else:
                    raise bad_length_error(n, "committed_metadata")
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
                left -= 1
                if not left:
                    left = 500
                    yield
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), group_instance_id, -1, topics)


def decode_request_v8_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetCommitRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id_or_member_epoch = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                topic_name = text_at(buf, pos + 1, end)
                pos = end
            else:
                topic_name, pos = read_compact_string(buf, pos, "name")
            n = buf[pos]
            topic_partitions_count = n - 1
            if topic_partitions_count < 127:
                pos += 1
            else:
                topic_partitions_count, pos = read_compact_count(buf, pos)
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                pos += 16
                if n == 1:
                    partition_committed_metadata: str | None = ""
                    pos += 1
                elif 0 < n < 128:
                    end = pos + n
                    partition_committed_metadata = text_at(buf, pos + 1, end)
                    pos = end
                elif n == 0:
                    partition_committed_metadata = None
                    pos += 1
                else:
                    partition_committed_metadata, pos = read_compact_nullable_string(buf, pos, "committed_metadata")
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
                left -= 1
                if not left:
                    left = 500
                    yield
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetCommitRequestTopic(topic_name, ZERO_UUID, topic_partitions))
            left -= 1
            if not left:
                left = 500
                yield
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), group_instance_id, -1, topics)


decode_request_v9_in_steps = decode_request_v8_in_steps


def decode_request_v10_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetCommitRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            group_id, pos = read_compact_string(buf, pos, "group_id")
        generation_id_or_member_epoch = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            member_id = text_at(buf, pos + 1, end)
            pos = end
        else:
            member_id, pos = read_compact_string(buf, pos, "member_id")
        n = buf[pos]
        if 0 < n < 128:
            end = pos + n
            group_instance_id: str | None = text_at(buf, pos + 1, end)
            pos = end
        elif n == 0:
            group_instance_id = None
            pos += 1
        else:
            group_instance_id, pos = read_compact_nullable_string(buf, pos, "group_instance_id")
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if not 0 <= topics_count * 18 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(topics_count):
            topic_topic_id, n = _UNPACK_16sB(buf, pos)
            pos += 16
            topic_partitions_count = n - 1
            if topic_partitions_count < 127:
                pos += 1
            else:
                topic_partitions_count, pos = read_compact_count(buf, pos)
            if not 0 <= topic_partitions_count * 18 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            items += topic_partitions_count
            if items > 50000:
                raise item_limit_error("partitions", 50000)
            topic_partitions: list[OffsetCommitRequestPartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                pos += 16
                if n == 1:
                    partition_committed_metadata: str | None = ""
                    pos += 1
                elif 0 < n < 128:
                    end = pos + n
                    partition_committed_metadata = text_at(buf, pos + 1, end)
                    pos = end
                elif n == 0:
                    partition_committed_metadata = None
                    pos += 1
                else:
                    partition_committed_metadata, pos = read_compact_nullable_string(buf, pos, "committed_metadata")
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetCommitRequestPartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, -1, partition_committed_metadata))
                left -= 1
                if not left:
                    left = 500
                    yield
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetCommitRequestTopic("", topic_topic_id, topic_partitions))
            left -= 1
            if not left:
                left = 500
                yield
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetCommitRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitRequest")
    return OffsetCommitRequest(GroupId(group_id), generation_id_or_member_epoch, MemberId(member_id), group_instance_id, -1, topics)


def decode_response_v2(buf: bytes, pos: int) -> OffsetCommitResponse:
    size = len(buf)
    try:
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetCommitResponseTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 6 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetCommitResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_error_code = _UNPACK_ih(buf, pos)
                pos += 6
                topic_partitions.append(OffsetCommitResponsePartition(partition_partition_index, partition_error_code))
            topics.append(OffsetCommitResponseTopic(topic_name, ZERO_UUID, topic_partitions))
    except (IndexError, error):
        raise Truncated("OffsetCommitResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitResponse")
    return OffsetCommitResponse(0, topics)


def decode_response_v3(buf: bytes, pos: int) -> OffsetCommitResponse:
    size = len(buf)
    try:
        throttle_time_ms, n = _UNPACK_ii(buf, pos)
        pos += 8
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetCommitResponseTopic] = []
        for _ in range(topics_count):
            (n,) = _UNPACK_h(buf, pos)
            pos += 2
            if n >= 0:
                end = pos + n
                topic_name = text_at(buf, pos, end)
                pos = end
            else:
                raise bad_length_error(n, "name")
            (n,) = _UNPACK_i(buf, pos)
            pos += 4
            topic_partitions_count = n
            if not 0 <= topic_partitions_count * 6 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetCommitResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_error_code = _UNPACK_ih(buf, pos)
                pos += 6
                topic_partitions.append(OffsetCommitResponsePartition(partition_partition_index, partition_error_code))
            topics.append(OffsetCommitResponseTopic(topic_name, ZERO_UUID, topic_partitions))
    except (IndexError, error):
        raise Truncated("OffsetCommitResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitResponse")
    return OffsetCommitResponse(throttle_time_ms, topics)


decode_response_v4 = decode_response_v3


decode_response_v5 = decode_response_v3


decode_response_v6 = decode_response_v3


decode_response_v7 = decode_response_v3


def decode_response_v8(buf: bytes, pos: int) -> OffsetCommitResponse:
    size = len(buf)
    try:
        throttle_time_ms = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetCommitResponseTopic] = []
        for _ in range(topics_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                topic_name = text_at(buf, pos + 1, end)
                pos = end
            else:
                topic_name, pos = read_compact_string(buf, pos, "name")
            n = buf[pos]
            topic_partitions_count = n - 1
            if topic_partitions_count < 127:
                pos += 1
            else:
                topic_partitions_count, pos = read_compact_count(buf, pos)
            if not 0 <= topic_partitions_count * 7 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetCommitResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_error_code = _UNPACK_ih(buf, pos)
                pos += 6
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetCommitResponsePartition(partition_partition_index, partition_error_code))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetCommitResponseTopic(topic_name, ZERO_UUID, topic_partitions))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetCommitResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitResponse")
    return OffsetCommitResponse(throttle_time_ms, topics)


decode_response_v9 = decode_response_v8


def decode_response_v10(buf: bytes, pos: int) -> OffsetCommitResponse:
    size = len(buf)
    try:
        throttle_time_ms = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if not 0 <= topics_count * 18 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetCommitResponseTopic] = []
        for _ in range(topics_count):
            topic_topic_id, n = _UNPACK_16sB(buf, pos)
            pos += 16
            topic_partitions_count = n - 1
            if topic_partitions_count < 127:
                pos += 1
            else:
                topic_partitions_count, pos = read_compact_count(buf, pos)
            if not 0 <= topic_partitions_count * 7 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetCommitResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_error_code = _UNPACK_ih(buf, pos)
                pos += 6
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetCommitResponsePartition(partition_partition_index, partition_error_code))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetCommitResponseTopic("", topic_topic_id, topic_partitions))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetCommitResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetCommitResponse")
    return OffsetCommitResponse(throttle_time_ms, topics)


def encode_response_v2(message: OffsetCommitResponse) -> bytes:
    out: list[bytes] = []
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(4, b'\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                out.append(pack_partition_error(partition.partition_index, partition.error_code))
    return b"".join(out)


def encode_response_v3(message: OffsetCommitResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(4, b'\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                out.append(pack_partition_error(partition.partition_index, partition.error_code))
    return b"".join(out)


encode_response_v4 = encode_response_v3


encode_response_v5 = encode_response_v3


encode_response_v6 = encode_response_v3


encode_response_v7 = encode_response_v3


def encode_response_v8(message: OffsetCommitResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    topics = message.topics
    n = len(topics) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for topic in topics:
        raw = topic.name.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            n = topic_partition_rows.count + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            out.append(topic_partition_rows.to_bytes_by_template(4, b'\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            n = len(topic_partitions) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for partition in topic_partitions:
                out.append(pack_tagged_partition_error(partition.partition_index, partition.error_code))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


encode_response_v9 = encode_response_v8


def encode_response_v10(message: OffsetCommitResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    topics = message.topics
    n = len(topics) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for topic in topics:
        out.append(_PACK_16s(topic.topic_id))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            n = topic_partition_rows.count + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            out.append(topic_partition_rows.to_bytes_by_template(4, b'\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            n = len(topic_partitions) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for partition in topic_partitions:
                out.append(pack_tagged_partition_error(partition.partition_index, partition.error_code))
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


CODECS: Final[dict[int, Codec[OffsetCommitRequest, OffsetCommitResponse]]] = {
    2: Codec(decode_request_v2, encode_response_v2, decode_response_v2, encode_request_v2, False, decode_request_v2_in_steps),
    3: Codec(decode_request_v3, encode_response_v3, decode_response_v3, encode_request_v3, False, decode_request_v3_in_steps),
    4: Codec(decode_request_v4, encode_response_v4, decode_response_v4, encode_request_v4, False, decode_request_v4_in_steps),
    5: Codec(decode_request_v5, encode_response_v5, decode_response_v5, encode_request_v5, False, decode_request_v5_in_steps),
    6: Codec(decode_request_v6, encode_response_v6, decode_response_v6, encode_request_v6, False, decode_request_v6_in_steps),
    7: Codec(decode_request_v7, encode_response_v7, decode_response_v7, encode_request_v7, False, decode_request_v7_in_steps),
    8: Codec(decode_request_v8, encode_response_v8, decode_response_v8, encode_request_v8, True, decode_request_v8_in_steps),
    9: Codec(decode_request_v9, encode_response_v9, decode_response_v9, encode_request_v9, True, decode_request_v9_in_steps),
    10: Codec(decode_request_v10, encode_response_v10, decode_response_v10, encode_request_v10, True, decode_request_v10_in_steps),
}

SCHEMA: Final = ApiSchema(ApiKey.OFFSET_COMMIT, OffsetCommitRequest, OffsetCommitResponse, CODECS)
