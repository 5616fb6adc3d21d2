# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""OffsetFetch v1-v10: the request and the response, both ways."""

from collections.abc import Callable, Generator
from struct import Struct, error
from typing import Final

from protocol.apis import ApiKey
from protocol.codec import ApiSchema, Codec
from protocol.compiled_struct import EMPTY, FieldsValue
from protocol.errors import Truncated, UnexpectedNull
from protocol.fixed_integers import int32_at
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, Offset
from protocol.rows import EncodedRows
from protocol.wire import (
    NULL_INT16,
    NULL_INT32,
    PACK_INT32,
    UNPACK_INT32S,
    UVARINT,
    ZERO_UUID,
    array_struct,
    bad_count_error,
    bad_length_error,
    item_limit_error,
    pack_compact_string,
    pack_int32,
    pack_string,
    pack_uvarint,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
    text_at,
)

_UNPACK_16sB: Final[Callable[[bytes, int], tuple[bytes, int]]] = Struct(">16sB").unpack_from
_UNPACK_t: Final[Callable[[bytes, int], tuple[bool]]] = Struct(">?").unpack_from
_UNPACK_h: Final[Callable[[bytes, int], tuple[int]]] = Struct(">h").unpack_from
_UNPACK_i: Final[Callable[[bytes, int], tuple[int]]] = Struct(">i").unpack_from
_UNPACK_ii: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">ii").unpack_from
_UNPACK_iqh: Final[Callable[[bytes, int], tuple[int, int, int]]] = Struct(">iqh").unpack_from
_UNPACK_iqiB: Final[Callable[[bytes, int], tuple[int, int, int, int]]] = Struct(">iqiB").unpack_from
_UNPACK_iqih: Final[Callable[[bytes, int], tuple[int, int, int, int]]] = Struct(">iqih").unpack_from
_PACK_16s: Final[Callable[..., bytes]] = Struct(">16s").pack
_PACK_tx: Final[Callable[..., bytes]] = Struct(">?x").pack
_PACK_h: Final[Callable[..., bytes]] = Struct(">h").pack
_PACK_hx: Final[Callable[..., bytes]] = Struct(">hx").pack
_PACK_iq: Final[Callable[..., bytes]] = Struct(">iq").pack
_PACK_iqhh: Final[Callable[..., bytes]] = Struct(">iqhh").pack
_PACK_iqi: Final[Callable[..., bytes]] = Struct(">iqi").pack
_PACK_iqiBhx: Final[Callable[..., bytes]] = Struct(">iqiBhx").pack
_PACK_iqihh: Final[Callable[..., bytes]] = Struct(">iqihh").pack


@mypyc_attr(acyclic=True)
class OffsetFetchRequestTopic(FieldsValue):
    __match_args__: Final = ("name", "partition_indexes",)
    __slots__ = __match_args__

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name: Final = name
        self.partition_indexes: Final = partition_indexes if partition_indexes is not EMPTY else []


@mypyc_attr(acyclic=True)
class OffsetFetchRequestTopics(FieldsValue):
    __match_args__: Final = ("name", "topic_id", "partition_indexes",)
    __slots__ = __match_args__

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name: Final = name
        self.topic_id: Final = topic_id
        self.partition_indexes: Final = partition_indexes if partition_indexes is not EMPTY else []


@mypyc_attr(acyclic=True)
class OffsetFetchRequestGroup(FieldsValue):
    __match_args__: Final = ("group_id", "member_id", "member_epoch", "topics",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
    ) -> None:
        self.group_id: Final = group_id
        self.member_id: Final = member_id
        self.member_epoch: Final = member_epoch
        self.topics: Final = topics if topics is not EMPTY else []


@mypyc_attr(acyclic=True)
class OffsetFetchRequest(FieldsValue):
    __match_args__: Final = ("group_id", "topics", "groups", "require_stable",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,
        groups: list[OffsetFetchRequestGroup] = EMPTY,
        require_stable: bool = False,
    ) -> None:
        self.group_id: Final = group_id
        self.topics: Final = topics if topics is not EMPTY else []
        self.groups: Final = groups if groups is not EMPTY else []
        self.require_stable: Final = require_stable


@mypyc_attr(acyclic=True)
class OffsetFetchResponsePartition(FieldsValue):
    __match_args__: Final = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)
    __slots__ = __match_args__

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: Offset = Offset(0),
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: Final = partition_index
        self.committed_offset: Final = committed_offset
        self.committed_leader_epoch: Final = committed_leader_epoch
        self.metadata: Final = metadata
        self.error_code: Final = error_code


@mypyc_attr(acyclic=True)
class OffsetFetchResponseTopic(FieldsValue):
    __match_args__: Final = ("name", "partitions",)
    __slots__ = ("_partitions", "name", "partition_rows",)

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = EMPTY,
        partition_rows: EncodedRows | None = None,
    ) -> None:
        self.name: Final = name
        self._partitions: Final = partitions if partitions is not EMPTY else []
        self.partition_rows = partition_rows

    @property
    def partitions(self) -> list[OffsetFetchResponsePartition]:
        rows = self.partition_rows
        if rows is not None:
            row: tuple[int, int, int]
            for row in rows.unpack("iqi"):
                self._partitions.append(OffsetFetchResponsePartition(row[0], Offset(row[1]), row[2], "", 0))
            self.partition_rows = None
        return self._partitions


@mypyc_attr(acyclic=True)
class OffsetFetchResponsePartitions(FieldsValue):
    __match_args__: Final = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)
    __slots__ = __match_args__

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: Offset = Offset(0),
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: Final = partition_index
        self.committed_offset: Final = committed_offset
        self.committed_leader_epoch: Final = committed_leader_epoch
        self.metadata: Final = metadata
        self.error_code: Final = error_code


@mypyc_attr(acyclic=True)
class OffsetFetchResponseTopics(FieldsValue):
    __match_args__: Final = ("name", "topic_id", "partitions",)
    __slots__ = ("_partitions", "name", "partition_rows", "topic_id",)

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = EMPTY,
        partition_rows: EncodedRows | None = None,
    ) -> None:
        self.name: Final = name
        self.topic_id: Final = topic_id
        self._partitions: Final = partitions if partitions is not EMPTY else []
        self.partition_rows = partition_rows

    @property
    def partitions(self) -> list[OffsetFetchResponsePartitions]:
        rows = self.partition_rows
        if rows is not None:
            row: tuple[int, int, int]
            for row in rows.unpack("iqi"):
                self._partitions.append(OffsetFetchResponsePartitions(row[0], Offset(row[1]), row[2], "", 0))
            self.partition_rows = None
        return self._partitions


@mypyc_attr(acyclic=True)
class OffsetFetchResponseGroup(FieldsValue):
    __match_args__: Final = ("group_id", "topics", "error_code",)
    __slots__ = __match_args__

    def __init__(
        self,
        group_id: GroupId = GroupId(""),
        topics: list[OffsetFetchResponseTopics] = EMPTY,
        error_code: int = 0,
    ) -> None:
        self.group_id: Final = group_id
        self.topics: Final = topics if topics is not EMPTY else []
        self.error_code: Final = error_code


@mypyc_attr(acyclic=True)
class OffsetFetchResponse(FieldsValue):
    __match_args__: Final = ("throttle_time_ms", "topics", "error_code", "groups",)
    __slots__ = __match_args__

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = EMPTY,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: Final = throttle_time_ms
        self.topics: Final = topics if topics is not EMPTY else []
        self.error_code: Final = error_code
        self.groups: Final = groups if groups is not EMPTY else []


def decode_request_v1(buf: bytes, pos: int) -> OffsetFetchRequest:
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
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetFetchRequestTopic] = []
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
            topic_partition_indexes_count = n
            if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
            items += topic_partition_indexes_count
            if items > 50000:
                raise item_limit_error("partition_indexes", 50000)
            if topic_partition_indexes_count < len(UNPACK_INT32S):
                topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
            else:
                topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
            pos += 4 * topic_partition_indexes_count
            topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], False)


def decode_request_v2(buf: bytes, pos: int) -> OffsetFetchRequest:
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
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if topics_count == -1:
            topics: list[OffsetFetchRequestTopic] | None = None
        elif not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        else:
            items += topics_count
            if items > 50000:
                raise item_limit_error("topics", 50000)
            topics = []
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
                topic_partition_indexes_count = n
                if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                    raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                items += topic_partition_indexes_count
                if items > 50000:
                    raise item_limit_error("partition_indexes", 50000)
                if topic_partition_indexes_count < len(UNPACK_INT32S):
                    topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                else:
                    topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                pos += 4 * topic_partition_indexes_count
                topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], False)


decode_request_v3 = decode_request_v2


decode_request_v4 = decode_request_v2


decode_request_v5 = decode_request_v2


def decode_request_v6(buf: bytes, pos: int) -> OffsetFetchRequest:
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
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if topics_count == -1:
            topics: list[OffsetFetchRequestTopic] | None = None
        elif not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        else:
            items += topics_count
            if items > 50000:
                raise item_limit_error("topics", 50000)
            topics = []
            for _ in range(topics_count):
                n = buf[pos]
                if 0 < n < 128:
                    end = pos + n
                    topic_name = text_at(buf, pos + 1, end)
                    pos = end
                else:
                    topic_name, pos = read_compact_string(buf, pos, "name")
                n = buf[pos]
                topic_partition_indexes_count = n - 1
                if topic_partition_indexes_count < 127:
                    pos += 1
                else:
                    topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                    raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                items += topic_partition_indexes_count
                if items > 50000:
                    raise item_limit_error("partition_indexes", 50000)
                if topic_partition_indexes_count < len(UNPACK_INT32S):
                    topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                else:
                    topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                pos += 4 * topic_partition_indexes_count
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], False)


def decode_request_v7(buf: bytes, pos: int) -> OffsetFetchRequest:
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
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if topics_count == -1:
            topics: list[OffsetFetchRequestTopic] | None = None
        elif not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        else:
            items += topics_count
            if items > 50000:
                raise item_limit_error("topics", 50000)
            topics = []
            for _ in range(topics_count):
                n = buf[pos]
                if 0 < n < 128:
                    end = pos + n
                    topic_name = text_at(buf, pos + 1, end)
                    pos = end
                else:
                    topic_name, pos = read_compact_string(buf, pos, "name")
                n = buf[pos]
                topic_partition_indexes_count = n - 1
                if topic_partition_indexes_count < 127:
                    pos += 1
                else:
                    topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                    raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                items += topic_partition_indexes_count
                if items > 50000:
                    raise item_limit_error("partition_indexes", 50000)
                if topic_partition_indexes_count < len(UNPACK_INT32S):
                    topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                else:
                    topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                pos += 4 * topic_partition_indexes_count
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], require_stable)


def decode_request_v8(buf: bytes, pos: int) -> OffsetFetchRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 3 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        items += groups_count
        if items > 50000:
            raise item_limit_error("groups", 50000)
        groups: list[OffsetFetchRequestGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if group_topics_count == -1:
                group_topics: list[OffsetFetchRequestTopics] | None = None
            elif not 0 <= group_topics_count * 3 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            else:
                items += group_topics_count
                if items > 50000:
                    raise item_limit_error("topics", 50000)
                group_topics = []
                for _ in range(group_topics_count):
                    n = buf[pos]
                    if 0 < n < 128:
                        end = pos + n
                        topic_name = text_at(buf, pos + 1, end)
                        pos = end
                    else:
                        topic_name, pos = read_compact_string(buf, pos, "name")
                    n = buf[pos]
                    topic_partition_indexes_count = n - 1
                    if topic_partition_indexes_count < 127:
                        pos += 1
                    else:
                        topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                    if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                        raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                    items += topic_partition_indexes_count
                    if items > 50000:
                        raise item_limit_error("partition_indexes", 50000)
                    if topic_partition_indexes_count < len(UNPACK_INT32S):
                        topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                    else:
                        topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                    pos += 4 * topic_partition_indexes_count
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    group_topics.append(OffsetFetchRequestTopics(topic_name, ZERO_UUID, topic_partition_indexes))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchRequestGroup(GroupId(group_group_id), None, -1, group_topics))
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(""), [], groups, require_stable)


def decode_request_v9(buf: bytes, pos: int) -> OffsetFetchRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 8 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        items += groups_count
        if items > 50000:
            raise item_limit_error("groups", 50000)
        groups: list[OffsetFetchRequestGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_member_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                group_member_id = None
                pos += 1
            else:
                group_member_id, pos = read_compact_nullable_string(buf, pos, "member_id")
            group_member_epoch = int32_at(buf, pos)
            pos += 4
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if group_topics_count == -1:
                group_topics: list[OffsetFetchRequestTopics] | None = None
            elif not 0 <= group_topics_count * 3 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            else:
                items += group_topics_count
                if items > 50000:
                    raise item_limit_error("topics", 50000)
                group_topics = []
                for _ in range(group_topics_count):
                    n = buf[pos]
                    if 0 < n < 128:
                        end = pos + n
                        topic_name = text_at(buf, pos + 1, end)
                        pos = end
                    else:
                        topic_name, pos = read_compact_string(buf, pos, "name")
                    n = buf[pos]
                    topic_partition_indexes_count = n - 1
                    if topic_partition_indexes_count < 127:
                        pos += 1
                    else:
                        topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                    if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                        raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                    items += topic_partition_indexes_count
                    if items > 50000:
                        raise item_limit_error("partition_indexes", 50000)
                    if topic_partition_indexes_count < len(UNPACK_INT32S):
                        topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                    else:
                        topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                    pos += 4 * topic_partition_indexes_count
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    group_topics.append(OffsetFetchRequestTopics(topic_name, ZERO_UUID, topic_partition_indexes))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchRequestGroup(GroupId(group_group_id), group_member_id, group_member_epoch, group_topics))
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(""), [], groups, require_stable)


def decode_request_v10(buf: bytes, pos: int) -> OffsetFetchRequest:
    size = len(buf)
    items = 0
    try:
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 8 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        items += groups_count
        if items > 50000:
            raise item_limit_error("groups", 50000)
        groups: list[OffsetFetchRequestGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_member_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                group_member_id = None
                pos += 1
            else:
                group_member_id, pos = read_compact_nullable_string(buf, pos, "member_id")
            group_member_epoch = int32_at(buf, pos)
            pos += 4
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if group_topics_count == -1:
                group_topics: list[OffsetFetchRequestTopics] | None = None
            elif not 0 <= group_topics_count * 18 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            else:
                items += group_topics_count
                if items > 50000:
                    raise item_limit_error("topics", 50000)
                group_topics = []
                for _ in range(group_topics_count):
                    topic_topic_id, n = _UNPACK_16sB(buf, pos)
                    pos += 16
                    topic_partition_indexes_count = n - 1
                    if topic_partition_indexes_count < 127:
                        pos += 1
                    else:
                        topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                    if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                        raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                    items += topic_partition_indexes_count
                    if items > 50000:
                        raise item_limit_error("partition_indexes", 50000)
                    if topic_partition_indexes_count < len(UNPACK_INT32S):
                        topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                    else:
                        topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                    pos += 4 * topic_partition_indexes_count
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    group_topics.append(OffsetFetchRequestTopics("", topic_topic_id, topic_partition_indexes))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchRequestGroup(GroupId(group_group_id), group_member_id, group_member_epoch, group_topics))
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(""), [], groups, require_stable)


def encode_request_v1(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    topics = message.topics
    if topics is None:
        raise UnexpectedNull("topics")
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_indexes = topic.partition_indexes
        out.append(PACK_INT32(len(topic_partition_indexes)))
        out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
    return b"".join(out)


def encode_request_v2(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    out.append(pack_string(message.group_id))
    topics = message.topics
    if topics is None:
        out.append(NULL_INT32)
    else:
        out.append(PACK_INT32(len(topics)))
        for topic in topics:
            out.append(pack_string(topic.name))
            topic_partition_indexes = topic.partition_indexes
            out.append(PACK_INT32(len(topic_partition_indexes)))
            out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
    return b"".join(out)


encode_request_v3 = encode_request_v2


encode_request_v4 = encode_request_v2


encode_request_v5 = encode_request_v2


def encode_request_v6(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    topics = message.topics
    if topics is None:
        out.append(b"\0")
    else:
        n = len(topics) + 1
        out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
        for topic in topics:
            raw = topic.name.encode()
            n = len(raw) + 1
            out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
            topic_partition_indexes = topic.partition_indexes
            n = len(topic_partition_indexes) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
            out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


def encode_request_v7(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    raw = message.group_id.encode()
    n = len(raw) + 1
    out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(message.group_id))
    topics = message.topics
    if topics is None:
        out.append(b"\0")
    else:
        n = len(topics) + 1
        out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
        for topic in topics:
            raw = topic.name.encode()
            n = len(raw) + 1
            out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
            topic_partition_indexes = topic.partition_indexes
            n = len(topic_partition_indexes) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
            out.append(b"\0")
    out.append(_PACK_tx(message.require_stable))
    return b"".join(out)


def encode_request_v8(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    groups = message.groups
    n = len(groups) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for group in groups:
        raw = group.group_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(group.group_id))
        group_topics = group.topics
        if group_topics is None:
            out.append(b"\0")
        else:
            n = len(group_topics) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for topic in group_topics:
                raw = topic.name.encode()
                n = len(raw) + 1
                out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
                topic_partition_indexes = topic.partition_indexes
                n = len(topic_partition_indexes) + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
                out.append(b"\0")
        out.append(b"\0")
    out.append(_PACK_tx(message.require_stable))
    return b"".join(out)


def encode_request_v9(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    groups = message.groups
    n = len(groups) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for group in groups:
        raw = group.group_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(group.group_id))
        out.append(b"\0" if group.member_id is None else pack_compact_string(group.member_id))
        out.append(pack_int32(group.member_epoch))
        group_topics = group.topics
        if group_topics is None:
            out.append(b"\0")
        else:
            n = len(group_topics) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for topic in group_topics:
                raw = topic.name.encode()
                n = len(raw) + 1
                out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
                topic_partition_indexes = topic.partition_indexes
                n = len(topic_partition_indexes) + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
                out.append(b"\0")
        out.append(b"\0")
    out.append(_PACK_tx(message.require_stable))
    return b"".join(out)


def encode_request_v10(message: OffsetFetchRequest) -> bytes:
    out: list[bytes] = []
    groups = message.groups
    n = len(groups) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for group in groups:
        raw = group.group_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(group.group_id))
        out.append(b"\0" if group.member_id is None else pack_compact_string(group.member_id))
        out.append(pack_int32(group.member_epoch))
        group_topics = group.topics
        if group_topics is None:
            out.append(b"\0")
        else:
            n = len(group_topics) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for topic in group_topics:
                out.append(_PACK_16s(topic.topic_id))
                topic_partition_indexes = topic.partition_indexes
                n = len(topic_partition_indexes) + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                out.append(array_struct("i", len(topic_partition_indexes)).pack(*topic_partition_indexes))
                out.append(b"\0")
        out.append(b"\0")
    out.append(_PACK_tx(message.require_stable))
    return b"".join(out)


def decode_request_v1_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
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
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        items += topics_count
        if items > 50000:
            raise item_limit_error("topics", 50000)
        topics: list[OffsetFetchRequestTopic] = []
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
            topic_partition_indexes_count = n
            if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
            items += topic_partition_indexes_count
            if items > 50000:
                raise item_limit_error("partition_indexes", 50000)
            if topic_partition_indexes_count < len(UNPACK_INT32S):
                topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
            else:
                topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
            pos += 4 * topic_partition_indexes_count
            topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
            left -= 1
            if not left:
                left = 500
                yield
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], False)


def decode_request_v2_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
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
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if topics_count == -1:
            topics: list[OffsetFetchRequestTopic] | None = None
        elif not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        else:
            items += topics_count
            if items > 50000:
                raise item_limit_error("topics", 50000)
            topics = []
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
                topic_partition_indexes_count = n
                if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                    raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                items += topic_partition_indexes_count
                if items > 50000:
                    raise item_limit_error("partition_indexes", 50000)
                if topic_partition_indexes_count < len(UNPACK_INT32S):
                    topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                else:
                    topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                pos += 4 * topic_partition_indexes_count
                topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
                left -= 1
                if not left:
                    left = 500
                    yield
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], False)


decode_request_v3_in_steps = decode_request_v2_in_steps


decode_request_v4_in_steps = decode_request_v2_in_steps


decode_request_v5_in_steps = decode_request_v2_in_steps


def decode_request_v6_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
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
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if topics_count == -1:
            topics: list[OffsetFetchRequestTopic] | None = None
        elif not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        else:
            items += topics_count
            if items > 50000:
                raise item_limit_error("topics", 50000)
            topics = []
            for _ in range(topics_count):
                n = buf[pos]
                if 0 < n < 128:
                    end = pos + n
                    topic_name = text_at(buf, pos + 1, end)
                    pos = end
                else:
                    topic_name, pos = read_compact_string(buf, pos, "name")
                n = buf[pos]
                topic_partition_indexes_count = n - 1
                if topic_partition_indexes_count < 127:
                    pos += 1
                else:
                    topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                    raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                items += topic_partition_indexes_count
                if items > 50000:
                    raise item_limit_error("partition_indexes", 50000)
                if topic_partition_indexes_count < len(UNPACK_INT32S):
                    topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                else:
                    topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                pos += 4 * topic_partition_indexes_count
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
                left -= 1
                if not left:
                    left = 500
                    yield
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], False)


def decode_request_v7_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
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
        n = buf[pos]
        topics_count = n - 1
        if topics_count < 127:
            pos += 1
        else:
            topics_count, pos = read_compact_count(buf, pos)
        if topics_count == -1:
            topics: list[OffsetFetchRequestTopic] | None = None
        elif not 0 <= topics_count * 3 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        else:
            items += topics_count
            if items > 50000:
                raise item_limit_error("topics", 50000)
            topics = []
            for _ in range(topics_count):
                n = buf[pos]
                if 0 < n < 128:
                    end = pos + n
                    topic_name = text_at(buf, pos + 1, end)
                    pos = end
                else:
                    topic_name, pos = read_compact_string(buf, pos, "name")
                n = buf[pos]
                topic_partition_indexes_count = n - 1
                if topic_partition_indexes_count < 127:
                    pos += 1
                else:
                    topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                    raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                items += topic_partition_indexes_count
                if items > 50000:
                    raise item_limit_error("partition_indexes", 50000)
                if topic_partition_indexes_count < len(UNPACK_INT32S):
                    topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                else:
                    topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                pos += 4 * topic_partition_indexes_count
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topics.append(OffsetFetchRequestTopic(topic_name, topic_partition_indexes))
                left -= 1
                if not left:
                    left = 500
                    yield
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(group_id), topics, [], require_stable)


def decode_request_v8_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 3 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        items += groups_count
        if items > 50000:
            raise item_limit_error("groups", 50000)
        groups: list[OffsetFetchRequestGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if group_topics_count == -1:
                group_topics: list[OffsetFetchRequestTopics] | None = None
            elif not 0 <= group_topics_count * 3 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            else:
                items += group_topics_count
                if items > 50000:
                    raise item_limit_error("topics", 50000)
                group_topics = []
                for _ in range(group_topics_count):
                    n = buf[pos]
                    if 0 < n < 128:
                        end = pos + n
                        topic_name = text_at(buf, pos + 1, end)
                        pos = end
                    else:
                        topic_name, pos = read_compact_string(buf, pos, "name")
                    n = buf[pos]
                    topic_partition_indexes_count = n - 1
                    if topic_partition_indexes_count < 127:
                        pos += 1
                    else:
                        topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                    if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                        raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                    items += topic_partition_indexes_count
                    if items > 50000:
                        raise item_limit_error("partition_indexes", 50000)
                    if topic_partition_indexes_count < len(UNPACK_INT32S):
                        topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                    else:
                        topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                    pos += 4 * topic_partition_indexes_count
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    group_topics.append(OffsetFetchRequestTopics(topic_name, ZERO_UUID, topic_partition_indexes))
                    left -= 1
                    if not left:
                        left = 500
                        yield
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchRequestGroup(GroupId(group_group_id), None, -1, group_topics))
            left -= 1
            if not left:
                left = 500
                yield
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(""), [], groups, require_stable)


def decode_request_v9_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 8 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        items += groups_count
        if items > 50000:
            raise item_limit_error("groups", 50000)
        groups: list[OffsetFetchRequestGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_member_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                group_member_id = None
                pos += 1
            else:
                group_member_id, pos = read_compact_nullable_string(buf, pos, "member_id")
            group_member_epoch = int32_at(buf, pos)
            pos += 4
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if group_topics_count == -1:
                group_topics: list[OffsetFetchRequestTopics] | None = None
            elif not 0 <= group_topics_count * 3 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            else:
                items += group_topics_count
                if items > 50000:
                    raise item_limit_error("topics", 50000)
                group_topics = []
                for _ in range(group_topics_count):
                    n = buf[pos]
                    if 0 < n < 128:
                        end = pos + n
                        topic_name = text_at(buf, pos + 1, end)
                        pos = end
                    else:
                        topic_name, pos = read_compact_string(buf, pos, "name")
                    n = buf[pos]
                    topic_partition_indexes_count = n - 1
                    if topic_partition_indexes_count < 127:
                        pos += 1
                    else:
                        topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                    if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                        raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                    items += topic_partition_indexes_count
                    if items > 50000:
                        raise item_limit_error("partition_indexes", 50000)
                    if topic_partition_indexes_count < len(UNPACK_INT32S):
                        topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                    else:
                        topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                    pos += 4 * topic_partition_indexes_count
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    group_topics.append(OffsetFetchRequestTopics(topic_name, ZERO_UUID, topic_partition_indexes))
                    left -= 1
                    if not left:
                        left = 500
                        yield
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchRequestGroup(GroupId(group_group_id), group_member_id, group_member_epoch, group_topics))
            left -= 1
            if not left:
                left = 500
                yield
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(""), [], groups, require_stable)


def decode_request_v10_in_steps(buf: bytes, pos: int) -> Generator[None, None, OffsetFetchRequest]:
    size = len(buf)
    items = 0
    left = 500
    try:
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 8 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        items += groups_count
        if items > 50000:
            raise item_limit_error("groups", 50000)
        groups: list[OffsetFetchRequestGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_member_id: str | None = text_at(buf, pos + 1, end)
                pos = end
            elif n == 0:
                group_member_id = None
                pos += 1
            else:
                group_member_id, pos = read_compact_nullable_string(buf, pos, "member_id")
            group_member_epoch = int32_at(buf, pos)
            pos += 4
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if group_topics_count == -1:
                group_topics: list[OffsetFetchRequestTopics] | None = None
            elif not 0 <= group_topics_count * 18 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            else:
                items += group_topics_count
                if items > 50000:
                    raise item_limit_error("topics", 50000)
                group_topics = []
                for _ in range(group_topics_count):
                    topic_topic_id, n = _UNPACK_16sB(buf, pos)
                    pos += 16
                    topic_partition_indexes_count = n - 1
                    if topic_partition_indexes_count < 127:
                        pos += 1
                    else:
                        topic_partition_indexes_count, pos = read_compact_count(buf, pos)
                    if not 0 <= topic_partition_indexes_count * 4 <= size - pos:
                        raise bad_count_error(topic_partition_indexes_count, "partition_indexes", size - pos)
                    items += topic_partition_indexes_count
                    if items > 50000:
                        raise item_limit_error("partition_indexes", 50000)
                    if topic_partition_indexes_count < len(UNPACK_INT32S):
                        topic_partition_indexes: list[int] = [*UNPACK_INT32S[topic_partition_indexes_count](buf, pos)]
                    else:
                        topic_partition_indexes = [*array_struct("i", topic_partition_indexes_count).unpack_from(buf, pos)]
                    pos += 4 * topic_partition_indexes_count
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    group_topics.append(OffsetFetchRequestTopics("", topic_topic_id, topic_partition_indexes))
                    left -= 1
                    if not left:
                        left = 500
                        yield
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchRequestGroup(GroupId(group_group_id), group_member_id, group_member_epoch, group_topics))
            left -= 1
            if not left:
                left = 500
                yield
        (require_stable,) = _UNPACK_t(buf, pos)
        pos += 1
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchRequest") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchRequest")
    return OffsetFetchRequest(GroupId(""), [], groups, require_stable)


def decode_response_v1(buf: bytes, pos: int) -> OffsetFetchResponse:
    size = len(buf)
    try:
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetFetchResponseTopic] = []
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
            if not 0 <= topic_partitions_count * 16 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetFetchResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_metadata = None
                else:
                    raise bad_length_error(n, "metadata")
                (partition_error_code,) = _UNPACK_h(buf, pos)
                pos += 2
                topic_partitions.append(OffsetFetchResponsePartition(partition_partition_index, Offset(partition_committed_offset), -1, partition_metadata, partition_error_code))
            topics.append(OffsetFetchResponseTopic(topic_name, topic_partitions))
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(0, topics, 0, [])


def decode_response_v2(buf: bytes, pos: int) -> OffsetFetchResponse:
    size = len(buf)
    try:
        (n,) = _UNPACK_i(buf, pos)
        pos += 4
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetFetchResponseTopic] = []
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
            if not 0 <= topic_partitions_count * 16 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetFetchResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_metadata = None
                else:
                    raise bad_length_error(n, "metadata")
                (partition_error_code,) = _UNPACK_h(buf, pos)
                pos += 2
                topic_partitions.append(OffsetFetchResponsePartition(partition_partition_index, Offset(partition_committed_offset), -1, partition_metadata, partition_error_code))
            topics.append(OffsetFetchResponseTopic(topic_name, topic_partitions))
        (error_code,) = _UNPACK_h(buf, pos)
        pos += 2
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(0, topics, error_code, [])


def decode_response_v3(buf: bytes, pos: int) -> OffsetFetchResponse:
    size = len(buf)
    try:
        throttle_time_ms, n = _UNPACK_ii(buf, pos)
        pos += 8
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetFetchResponseTopic] = []
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
            if not 0 <= topic_partitions_count * 16 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetFetchResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, n = _UNPACK_iqh(buf, pos)
                pos += 14
                if n >= 0:
                    end = pos + n
                    partition_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_metadata = None
                else:
                    raise bad_length_error(n, "metadata")
                (partition_error_code,) = _UNPACK_h(buf, pos)
                pos += 2
                topic_partitions.append(OffsetFetchResponsePartition(partition_partition_index, Offset(partition_committed_offset), -1, partition_metadata, partition_error_code))
            topics.append(OffsetFetchResponseTopic(topic_name, topic_partitions))
        (error_code,) = _UNPACK_h(buf, pos)
        pos += 2
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, [])


decode_response_v4 = decode_response_v3


def decode_response_v5(buf: bytes, pos: int) -> OffsetFetchResponse:
    size = len(buf)
    try:
        throttle_time_ms, n = _UNPACK_ii(buf, pos)
        pos += 8
        topics_count = n
        if not 0 <= topics_count * 6 <= size - pos:
            raise bad_count_error(topics_count, "topics", size - pos)
        topics: list[OffsetFetchResponseTopic] = []
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
            if not 0 <= topic_partitions_count * 20 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetFetchResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqih(buf, pos)
                pos += 18
                if n >= 0:
                    end = pos + n
                    partition_metadata: str | None = text_at(buf, pos, end)
                    pos = end
                elif n == -1:
                    partition_metadata = None
                else:
                    raise bad_length_error(n, "metadata")
                (partition_error_code,) = _UNPACK_h(buf, pos)
                pos += 2
                topic_partitions.append(OffsetFetchResponsePartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, partition_metadata, partition_error_code))
            topics.append(OffsetFetchResponseTopic(topic_name, topic_partitions))
        (error_code,) = _UNPACK_h(buf, pos)
        pos += 2
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, [])


def decode_response_v6(buf: bytes, pos: int) -> OffsetFetchResponse:
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
        topics: list[OffsetFetchResponseTopic] = []
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
            if not 0 <= topic_partitions_count * 20 <= size - pos:
                raise bad_count_error(topic_partitions_count, "partitions", size - pos)
            topic_partitions: list[OffsetFetchResponsePartition] = []
            for _ in range(topic_partitions_count):
                partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                pos += 16
                if n == 1:
                    partition_metadata: str | None = ""
                    pos += 1
                elif 0 < n < 128:
                    end = pos + n
                    partition_metadata = text_at(buf, pos + 1, end)
                    pos = end
                elif n == 0:
                    partition_metadata = None
                    pos += 1
                else:
                    partition_metadata, pos = read_compact_nullable_string(buf, pos, "metadata")
                (partition_error_code,) = _UNPACK_h(buf, pos)
                pos += 2
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                topic_partitions.append(OffsetFetchResponsePartition(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, partition_metadata, partition_error_code))
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            topics.append(OffsetFetchResponseTopic(topic_name, topic_partitions))
        (error_code,) = _UNPACK_h(buf, pos)
        pos += 2
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, [])


decode_response_v7 = decode_response_v6


def decode_response_v8(buf: bytes, pos: int) -> OffsetFetchResponse:
    size = len(buf)
    try:
        throttle_time_ms = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 5 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        groups: list[OffsetFetchResponseGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if not 0 <= group_topics_count * 3 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            group_topics: list[OffsetFetchResponseTopics] = []
            for _ in range(group_topics_count):
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
                if not 0 <= topic_partitions_count * 20 <= size - pos:
                    raise bad_count_error(topic_partitions_count, "partitions", size - pos)
                topic_partitions: list[OffsetFetchResponsePartitions] = []
                for _ in range(topic_partitions_count):
                    partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                    pos += 16
                    if n == 1:
                        partition_metadata: str | None = ""
                        pos += 1
                    elif 0 < n < 128:
                        end = pos + n
                        partition_metadata = text_at(buf, pos + 1, end)
                        pos = end
                    elif n == 0:
                        partition_metadata = None
                        pos += 1
                    else:
                        partition_metadata, pos = read_compact_nullable_string(buf, pos, "metadata")
                    (partition_error_code,) = _UNPACK_h(buf, pos)
                    pos += 2
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    topic_partitions.append(OffsetFetchResponsePartitions(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, partition_metadata, partition_error_code))
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                group_topics.append(OffsetFetchResponseTopics(topic_name, ZERO_UUID, topic_partitions))
            (group_error_code,) = _UNPACK_h(buf, pos)
            pos += 2
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchResponseGroup(GroupId(group_group_id), group_topics, group_error_code))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(throttle_time_ms, [], 0, groups)


decode_response_v9 = decode_response_v8


def decode_response_v10(buf: bytes, pos: int) -> OffsetFetchResponse:
    size = len(buf)
    try:
        throttle_time_ms = int32_at(buf, pos)
        pos += 4
        n = buf[pos]
        groups_count = n - 1
        if groups_count < 127:
            pos += 1
        else:
            groups_count, pos = read_compact_count(buf, pos)
        if not 0 <= groups_count * 5 <= size - pos:
            raise bad_count_error(groups_count, "groups", size - pos)
        groups: list[OffsetFetchResponseGroup] = []
        for _ in range(groups_count):
            n = buf[pos]
            if 0 < n < 128:
                end = pos + n
                group_group_id = text_at(buf, pos + 1, end)
                pos = end
            else:
                group_group_id, pos = read_compact_string(buf, pos, "group_id")
            n = buf[pos]
            group_topics_count = n - 1
            if group_topics_count < 127:
                pos += 1
            else:
                group_topics_count, pos = read_compact_count(buf, pos)
            if not 0 <= group_topics_count * 18 <= size - pos:
                raise bad_count_error(group_topics_count, "topics", size - pos)
            group_topics: list[OffsetFetchResponseTopics] = []
            for _ in range(group_topics_count):
                topic_topic_id, n = _UNPACK_16sB(buf, pos)
                pos += 16
                topic_partitions_count = n - 1
                if topic_partitions_count < 127:
                    pos += 1
                else:
                    topic_partitions_count, pos = read_compact_count(buf, pos)
                if not 0 <= topic_partitions_count * 20 <= size - pos:
                    raise bad_count_error(topic_partitions_count, "partitions", size - pos)
                topic_partitions: list[OffsetFetchResponsePartitions] = []
                for _ in range(topic_partitions_count):
                    partition_partition_index, partition_committed_offset, partition_committed_leader_epoch, n = _UNPACK_iqiB(buf, pos)
                    pos += 16
                    if n == 1:
                        partition_metadata: str | None = ""
                        pos += 1
                    elif 0 < n < 128:
                        end = pos + n
                        partition_metadata = text_at(buf, pos + 1, end)
                        pos = end
                    elif n == 0:
                        partition_metadata = None
                        pos += 1
                    else:
                        partition_metadata, pos = read_compact_nullable_string(buf, pos, "metadata")
                    (partition_error_code,) = _UNPACK_h(buf, pos)
                    pos += 2
                    if buf[pos]:
                        pos = skip_tags(buf, pos)
                    else:
                        pos += 1
                    topic_partitions.append(OffsetFetchResponsePartitions(partition_partition_index, Offset(partition_committed_offset), partition_committed_leader_epoch, partition_metadata, partition_error_code))
                if buf[pos]:
                    pos = skip_tags(buf, pos)
                else:
                    pos += 1
                group_topics.append(OffsetFetchResponseTopics("", topic_topic_id, topic_partitions))
            (group_error_code,) = _UNPACK_h(buf, pos)
            pos += 2
            if buf[pos]:
                pos = skip_tags(buf, pos)
            else:
                pos += 1
            groups.append(OffsetFetchResponseGroup(GroupId(group_group_id), group_topics, group_error_code))
        if buf[pos]:
            pos = skip_tags(buf, pos)
        else:
            pos += 1
    except (IndexError, error):
        raise Truncated("OffsetFetchResponse") from None
    if pos > len(buf):
        raise Truncated("OffsetFetchResponse")
    return OffsetFetchResponse(throttle_time_ms, [], 0, groups)


def encode_response_v1(message: OffsetFetchResponse) -> bytes:
    out: list[bytes] = []
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.metadata == "":
                    out.append(_PACK_iqhh(partition.partition_index, partition.committed_offset, 0, partition.error_code))
                else:
                    out.append(_PACK_iq(partition.partition_index, partition.committed_offset))
                    out.append(NULL_INT16 if partition.metadata is None else pack_string(partition.metadata))
                    out.append(_PACK_h(partition.error_code))
    return b"".join(out)


def encode_response_v2(message: OffsetFetchResponse) -> bytes:
    out: list[bytes] = []
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.metadata == "":
                    out.append(_PACK_iqhh(partition.partition_index, partition.committed_offset, 0, partition.error_code))
                else:
                    out.append(_PACK_iq(partition.partition_index, partition.committed_offset))
                    out.append(NULL_INT16 if partition.metadata is None else pack_string(partition.metadata))
                    out.append(_PACK_h(partition.error_code))
    out.append(_PACK_h(message.error_code))
    return b"".join(out)


def encode_response_v3(message: OffsetFetchResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(12, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.metadata == "":
                    out.append(_PACK_iqhh(partition.partition_index, partition.committed_offset, 0, partition.error_code))
                else:
                    out.append(_PACK_iq(partition.partition_index, partition.committed_offset))
                    out.append(NULL_INT16 if partition.metadata is None else pack_string(partition.metadata))
                    out.append(_PACK_h(partition.error_code))
    out.append(_PACK_h(message.error_code))
    return b"".join(out)


encode_response_v4 = encode_response_v3


def encode_response_v5(message: OffsetFetchResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    topics = message.topics
    out.append(PACK_INT32(len(topics)))
    for topic in topics:
        out.append(pack_string(topic.name))
        topic_partition_rows = topic.partition_rows
        if topic_partition_rows is not None:
            out.append(PACK_INT32(topic_partition_rows.count))
            out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            out.append(PACK_INT32(len(topic_partitions)))
            for partition in topic_partitions:
                if partition.metadata == "":
                    out.append(_PACK_iqihh(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 0, partition.error_code))
                else:
                    out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                    out.append(NULL_INT16 if partition.metadata is None else pack_string(partition.metadata))
                    out.append(_PACK_h(partition.error_code))
    out.append(_PACK_h(message.error_code))
    return b"".join(out)


def encode_response_v6(message: OffsetFetchResponse) -> bytes:
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
            out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00'))
        else:
            topic_partitions = topic.partitions
            n = len(topic_partitions) + 1
            out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
            for partition in topic_partitions:
                if partition.metadata == "":
                    out.append(_PACK_iqiBhx(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 1, partition.error_code))
                else:
                    out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                    out.append(b"\0" if partition.metadata is None else pack_compact_string(partition.metadata))
                    out.append(_PACK_hx(partition.error_code))
        out.append(b"\0")
    out.append(_PACK_hx(message.error_code))
    return b"".join(out)


encode_response_v7 = encode_response_v6


def encode_response_v8(message: OffsetFetchResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    groups = message.groups
    n = len(groups) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for group in groups:
        raw = group.group_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(group.group_id))
        group_topics = group.topics
        n = len(group_topics) + 1
        out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
        for topic in group_topics:
            raw = topic.name.encode()
            n = len(raw) + 1
            out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(topic.name))
            topic_partition_rows = topic.partition_rows
            if topic_partition_rows is not None:
                n = topic_partition_rows.count + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00'))
            else:
                topic_partitions = topic.partitions
                n = len(topic_partitions) + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                for partition in topic_partitions:
                    if partition.metadata == "":
                        out.append(_PACK_iqiBhx(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 1, partition.error_code))
                    else:
                        out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                        out.append(b"\0" if partition.metadata is None else pack_compact_string(partition.metadata))
                        out.append(_PACK_hx(partition.error_code))
            out.append(b"\0")
        out.append(_PACK_hx(group.error_code))
    out.append(b"\0")
    return b"".join(out)


encode_response_v9 = encode_response_v8


def encode_response_v10(message: OffsetFetchResponse) -> bytes:
    out: list[bytes] = []
    out.append(pack_int32(message.throttle_time_ms))
    groups = message.groups
    n = len(groups) + 1
    out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
    for group in groups:
        raw = group.group_id.encode()
        n = len(raw) + 1
        out.append(UVARINT[n] + raw if n < 128 else pack_compact_string(group.group_id))
        group_topics = group.topics
        n = len(group_topics) + 1
        out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
        for topic in group_topics:
            out.append(_PACK_16s(topic.topic_id))
            topic_partition_rows = topic.partition_rows
            if topic_partition_rows is not None:
                n = topic_partition_rows.count + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                out.append(topic_partition_rows.to_bytes_by_template(16, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00'))
            else:
                topic_partitions = topic.partitions
                n = len(topic_partitions) + 1
                out.append(UVARINT[n] if n < 128 else pack_uvarint(n))
                for partition in topic_partitions:
                    if partition.metadata == "":
                        out.append(_PACK_iqiBhx(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch, 1, partition.error_code))
                    else:
                        out.append(_PACK_iqi(partition.partition_index, partition.committed_offset, partition.committed_leader_epoch))
                        out.append(b"\0" if partition.metadata is None else pack_compact_string(partition.metadata))
                        out.append(_PACK_hx(partition.error_code))
            out.append(b"\0")
        out.append(_PACK_hx(group.error_code))
    out.append(b"\0")
    return b"".join(out)


CODECS: Final[dict[int, Codec[OffsetFetchRequest, OffsetFetchResponse]]] = {
    1: Codec(decode_request_v1, encode_response_v1, decode_response_v1, encode_request_v1, False, decode_request_v1_in_steps),
    2: Codec(decode_request_v2, encode_response_v2, decode_response_v2, encode_request_v2, False, decode_request_v2_in_steps),
    3: Codec(decode_request_v3, encode_response_v3, decode_response_v3, encode_request_v3, False, decode_request_v3_in_steps),
    4: Codec(decode_request_v4, encode_response_v4, decode_response_v4, encode_request_v4, False, decode_request_v4_in_steps),
    5: Codec(decode_request_v5, encode_response_v5, decode_response_v5, encode_request_v5, False, decode_request_v5_in_steps),
    6: Codec(decode_request_v6, encode_response_v6, decode_response_v6, encode_request_v6, True, decode_request_v6_in_steps),
    7: Codec(decode_request_v7, encode_response_v7, decode_response_v7, encode_request_v7, True, decode_request_v7_in_steps),
    8: Codec(decode_request_v8, encode_response_v8, decode_response_v8, encode_request_v8, True, decode_request_v8_in_steps),
    9: Codec(decode_request_v9, encode_response_v9, decode_response_v9, encode_request_v9, True, decode_request_v9_in_steps),
    10: Codec(decode_request_v10, encode_response_v10, decode_response_v10, encode_request_v10, True, decode_request_v10_in_steps),
}

SCHEMA: Final = ApiSchema(ApiKey.OFFSET_FETCH, OffsetFetchRequest, OffsetFetchResponse, CODECS)
