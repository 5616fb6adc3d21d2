# SPDX-License-Identifier: Apache-2.0
"""A model of a Kafka cluster: what its brokers answer to whom. A test holds it to a real Kafka; it does no I/O."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from coordinator.config import Address
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ErrorCode
from protocol.placement import partition_for
from tests.simulation.gateway.groups import NO_OFFSET, Committed, Groups, Place, not_joined
from tests.simulation.gateway.permits import Permit, Permits
from tests.simulation.gateway.settings import OFFSETS_TOPIC

CLUSTER_ID: Final = "bW9kZWwtb2YtYS1jbHVzdGVy"
OFFSETS_PARTITIONS: Final = 5
PLAIN: Final = "PLAIN"
OPERATIONS: Final = {
    "GROUP": {"READ": 3, "DELETE": 6, "DESCRIBE": 8, "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11},
    "TOPIC": {"READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8},
    "CLUSTER": {"CREATE": 5, "ALTER": 7, "DESCRIBE": 8},
}
CLUSTER: Final = "kafka-cluster"
"""The name of the cluster as a resource."""
OFFERED: Final[Mapping[ApiKey, VersionRange]] = {
    ApiKey.PRODUCE: VersionRange(3, 12),
    ApiKey.FETCH: VersionRange(4, 12),
    ApiKey.LIST_OFFSETS: VersionRange(1, 7),
    ApiKey.METADATA: VersionRange(1, 12),
    ApiKey.OFFSET_COMMIT: VersionRange(2, 10),
    ApiKey.OFFSET_FETCH: VersionRange(1, 10),
    ApiKey.FIND_COORDINATOR: VersionRange(0, 6),
    ApiKey.JOIN_GROUP: VersionRange(2, 9),
    ApiKey.HEARTBEAT: VersionRange(0, 4),
    ApiKey.LEAVE_GROUP: VersionRange(0, 5),
    ApiKey.SYNC_GROUP: VersionRange(0, 5),
    ApiKey.DESCRIBE_GROUPS: VersionRange(0, 6),
    ApiKey.LIST_GROUPS: VersionRange(0, 5),
    ApiKey.SASL_HANDSHAKE: VersionRange(0, 1),
    ApiKey.API_VERSIONS: VersionRange(0, 3),
    ApiKey.DELETE_GROUPS: VersionRange(0, 3),
    ApiKey.OFFSET_DELETE: VersionRange(0, 0),
    ApiKey.DESCRIBE_CLUSTER: VersionRange(0, 1),
    ApiKey.SASL_AUTHENTICATE: VersionRange(0, 2),
}
BEFORE_LOGIN: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
SEVERAL_FROM: Final = {ApiKey.FIND_COORDINATOR: 4, ApiKey.OFFSET_FETCH: 8, ApiKey.LEAVE_GROUP: 3}
"""The versions from which one request asks about several groups, keys or members."""
PROTOCOLS_FROM: Final = 5
"""SyncGroup names the protocol."""
GROUP_ERROR_FROM: Final = 2
"""OffsetFetch has an error of the group, and then says nothing of topics."""
IDS_FROM: Final = 10
"""OffsetCommit and OffsetFetch name topics by their ids."""
GROUP_KEY: Final = 0
KEYS: Final = (GROUP_KEY, 1)
"""What coordinators are found for: groups, and transactions."""
CONSUMERS: Final = "consumer"
"""The protocol type of groups whose members subscribe to topics."""
METADATA_BYTES_MAX: Final = 4_096
RECORDS_BYTES_MAX: Final = 200_000

Fields = dict[str, Any]


class Caller(NamedTuple):
    """Who asks which broker."""

    user: str
    broker: int
    client_id: str


@dataclass(slots=True)
class Topic:
    """A topic; one that is made anew has another id."""

    topic_id: UUID
    partitions: int


class Row(NamedTuple):
    """What an answer says of a partition."""

    topic: "Named"
    partition: int
    fields: Fields
    is_refused: bool = False
    """Whether that was so before the group was asked: such rows stand apart."""


class Named(NamedTuple):
    """A topic as a request names it."""

    name: str | None
    """None where there is no topic of this id."""
    topic_id: UUID | None = None


@dataclass(slots=True)
class Faults:
    """What goes wrong within a broker while it answers the request that it has now."""

    before: ErrorCode = ErrorCode.NONE
    """The error in place of a decision about permissions."""
    after: ErrorCode = ErrorCode.NONE
    """The error of the coordinator, once permissions are decided."""
    of_partition: Callable[[], ErrorCode] = lambda: ErrorCode.NONE
    """The error of one partition."""


class Model:
    """The whole cluster."""

    def __init__(self, now_s: Callable[[], float], brokers: Mapping[int, Address], permits: Permits) -> None:
        self.now_s = now_s
        self.brokers = dict(brokers)
        """Those that are alive."""
        self.permits = permits
        self.groups = Groups(now_s)
        self.topics: dict[str, Topic] = {OFFSETS_TOPIC: Topic(UUID(int=1), OFFSETS_PARTITIONS)}
        self.moves = 0
        """How often coordinators and leaders have moved."""
        self.faults = Faults()
        self._ids = 1
        self._handlers: dict[ApiKey, Callable[[Caller, int, Any], Fields | None]] = {
            ApiKey.PRODUCE: self._produce,
            ApiKey.FETCH: self._fetch,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.METADATA: self._metadata,
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.JOIN_GROUP: self._join,
            ApiKey.SYNC_GROUP: self._sync,
            ApiKey.HEARTBEAT: self._heartbeat,
            ApiKey.LEAVE_GROUP: self._leave,
            ApiKey.OFFSET_COMMIT: self._commit,
            ApiKey.OFFSET_FETCH: self._fetch_offsets,
            ApiKey.OFFSET_DELETE: self._delete_offsets,
            ApiKey.DESCRIBE_GROUPS: self._describe_groups,
            ApiKey.LIST_GROUPS: self._list_groups,
            ApiKey.DELETE_GROUPS: self._delete_groups,
        }

    def handle(self, caller: Caller, api: ApiKey, version: int, request: Any) -> Fields | None:
        """The answer of a broker to a client that has logged in; None where there is none."""
        return self._handlers[api](caller, version, request)

    # --- what happens to it ---

    def create_topic(self, name: str, count: int) -> None:
        """Make a topic, with a new id."""
        self._ids += 1
        self.topics[name] = Topic(UUID(int=self._ids << 64 | 7), count)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and all that is committed in it."""
        if self.topics.pop(name, None) is not None:
            self.groups.topic_is_gone(name)

    def coordinator(self, group_id: str) -> int | None:
        """The broker that coordinates a group."""
        return self._leader(partition_for(group_id, OFFSETS_PARTITIONS))  # type: ignore[arg-type]

    def _leader(self, number: int) -> int | None:
        alive = sorted(self.brokers)
        return alive[(number + self.moves) % len(alive)] if alive else None

    # --- what users may do ---

    def _may(self, caller: Caller, operation: str, resource: str, name: str) -> bool:
        return self.permits.has(caller.user, Permit(operation, resource, name), self.now_s())

    def _group_error(self, caller: Caller, operation: str, group_id: str) -> ErrorCode:
        """Permissions come first, then whether this broker coordinates the group."""
        if self.faults.before:
            return self.faults.before
        if not self._may(caller, operation, "GROUP", group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if self.faults.after:
            return self.faults.after
        return ErrorCode.NONE if self.coordinator(group_id) == caller.broker else ErrorCode.NOT_COORDINATOR

    def _topic_error(self, caller: Caller, operation: str, name: str, index: int | None = None) -> ErrorCode:
        if not self._may(caller, operation, "TOPIC", name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic = self.topics.get(name)
        if topic is None or (index is not None and not 0 <= index < topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self.faults.of_partition()

    def _operations(self, caller: Caller, resource: str, name: str) -> set[int]:
        operations = OPERATIONS[resource]
        return {code for each, code in operations.items() if self._may(caller, each, resource, name)}

    # --- the cluster ---

    def _metadata(self, caller: Caller, version: int, request: Any) -> Fields:
        if request.topics is None:
            names = [name for name in self.topics if self._may(caller, "DESCRIBE", "TOPIC", name)]
            topics = [self._described_topic(caller, name, request) for name in names]
        else:
            topics = [self._asked_topic(caller, each, request) for each in request.topics]
        found = {
            "brokers": self._addresses("node_id"),
            "cluster_id": CLUSTER_ID,
            "controller_id": next(iter(self.brokers), -1),
            "topics": topics,
        }
        if getattr(request, "include_cluster_authorized_operations", False):
            found["authorized_operations"] = self._operations(caller, "CLUSTER", CLUSTER)
        return found

    def _addresses(self, key: str) -> list[Fields]:
        return [
            {key: number, "host": address.host, "port": address.port, "rack": None}
            for number, address in sorted(self.brokers.items())
        ]

    def _asked_topic(self, caller: Caller, asked: Any, request: Any) -> Fields:
        name, topic_id = asked.name, getattr(asked, "topic_id", None)
        if name is None:
            by_id = {topic.topic_id: known for known, topic in self.topics.items()}
            name = None if topic_id is None else by_id.get(topic_id)
            if name is None or not self._may(caller, "DESCRIBE", "TOPIC", name):
                error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return {"error_code": int(error), "name": None, "topic_id": topic_id, "partitions": []}
        return self._described_topic(caller, name, request)

    def _described_topic(self, caller: Caller, name: str, request: Any) -> Fields:
        error = self.faults.before or self._topic_error(caller, "DESCRIBE", name)
        shown: Fields = {"error_code": int(error), "name": name, "topic_id": None, "partitions": []}
        if getattr(request, "include_topic_authorized_operations", False):
            shown["authorized_operations"] = self._operations(caller, "TOPIC", name)
        topic = self.topics.get(name)
        if error or topic is None:
            return shown
        shown["topic_id"], shown["is_internal"] = topic.topic_id, name == OFFSETS_TOPIC
        for index in range(topic.partitions):
            leader = self._leader(index)
            replicas = {"replica_nodes": [leader], "isr_nodes": [leader], "offline_replicas": []}
            shown["partitions"].append({"partition_index": index, "leader_id": leader, **replicas})
        return shown

    def _describe_cluster(self, _caller: Caller, _version: int, _request: Any) -> Fields:
        brokers = self._addresses("broker_id")
        return {"cluster_id": CLUSTER_ID, "controller_id": next(iter(self.brokers), -1), "brokers": brokers}

    def _find_coordinator(self, caller: Caller, version: int, request: Any) -> Fields:
        several = version >= SEVERAL_FROM[ApiKey.FIND_COORDINATOR]
        keys = request.coordinator_keys if several else [request.key]
        kind = getattr(request, "key_type", GROUP_KEY)
        said = "" if several else "NONE"
        found = [self._coordinator_of(caller, key, kind, said) for key in keys]
        if several:
            return {"coordinators": found}
        return {name: value for name, value in found[0].items() if name != "key"}

    def _coordinator_of(self, caller: Caller, key: str, kind: int, said: str) -> Fields:
        error = self.faults.before or self.faults.after
        if not error and kind == GROUP_KEY and not self._may(caller, "DESCRIBE", "GROUP", key):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            said = said and "Group authorization failed."
        leader = self.coordinator(key)
        if error or leader is None:
            error = error or ErrorCode.COORDINATOR_NOT_AVAILABLE
            place: Fields = {"node_id": -1, "host": "", "port": -1}
        else:
            host, port = self.brokers[leader]
            place = {"node_id": leader, "host": host, "port": port}
        return {"key": key, "error_code": int(error), "error_message": said, **place}

    # --- records: an answer has what tells its request, and who has asked ---

    def _produce(self, caller: Caller, version: int, request: Any) -> Fields | None:
        responses, moved = [], False
        for topic in request.topic_data:
            rows = []
            for part in topic.partition_data:
                error = self._topic_error(caller, "WRITE", topic.name, part.index)
                leader = self._leader(part.index)
                if not error and leader != caller.broker:
                    error, moved = ErrorCode.NOT_LEADER_OR_FOLLOWER, True
                row: Fields = {"index": part.index, "error_code": int(error), "base_offset": -1}
                if not error:
                    row["base_offset"] = int.from_bytes(part.records[:8], "big")
                rows.append(row)
            responses.append({"name": topic.name, "partition_responses": rows})
        if not request.acks:
            return None
        answer: Fields = {"responses": responses}
        return answer | ({"node_endpoints": self._addresses("node_id")} if moved else {})

    def _fetch(self, caller: Caller, _version: int, request: Any) -> Fields:
        responses = []
        for topic in request.topics:
            rows = []
            for part in topic.partitions:
                error = self._topic_error(caller, "READ", topic.topic, part.partition)
                mark = f"{caller.user} {part.fetch_offset} ".encode()
                size = min(part.partition_max_bytes, RECORDS_BYTES_MAX)
                row: Fields = {"partition_index": part.partition, "error_code": int(error)}
                row |= {"high_watermark": part.fetch_offset, "aborted_transactions": None}
                row["records"] = b"" if error else (mark * (size // len(mark) + 1))[:size]
                rows.append(row)
            responses.append({"topic": topic.topic, "partitions": rows})
        return {"responses": responses}

    def _list_offsets(self, caller: Caller, _version: int, request: Any) -> Fields:
        topics = []
        for topic in request.topics:
            rows = []
            for part in topic.partitions:
                error = self._topic_error(caller, "DESCRIBE", topic.name, part.partition_index)
                row: Fields = {"partition_index": part.partition_index, "error_code": int(error)}
                told = NO_OFFSET if error else part.timestamp
                rows.append(row | {"timestamp": NO_OFFSET, "offset": told, "leader_epoch": -1})
            topics.append({"name": topic.name, "partitions": rows})
        return {"topics": topics}

    # --- members ---

    def _join(self, caller: Caller, version: int, request: Any) -> Fields:
        error = self._group_error(caller, "READ", request.group_id)
        if error and request.group_id:
            return not_joined(request, version, error)
        return self.groups.join(request, version, caller.client_id)

    def _sync(self, caller: Caller, version: int, request: Any) -> Fields:
        error = self._group_error(caller, "READ", request.group_id)
        if version >= PROTOCOLS_FROM and None in (request.protocol_type, request.protocol_name):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # whoever asks
        if error:
            return {"error_code": int(error), "protocol_type": None, "protocol_name": None, "assignment": b""}
        return self.groups.sync(request)

    def _heartbeat(self, caller: Caller, _version: int, request: Any) -> Fields:
        error = self._group_error(caller, "READ", request.group_id)
        return {"error_code": int(error or self.groups.heartbeat(request))}

    def _leave(self, caller: Caller, version: int, request: Any) -> Fields:
        error = self._group_error(caller, "READ", request.group_id)
        if version < SEVERAL_FROM[ApiKey.LEAVE_GROUP]:
            return {"error_code": int(error or self.groups.leave(request.group_id, request.member_id))}
        rows = [
            {
                "member_id": each.member_id,
                "group_instance_id": each.group_instance_id,
                "error_code": int(self.groups.leave(request.group_id, each.member_id)),
            }
            for each in (() if error else request.members)
        ]
        return {"error_code": int(error), "members": rows}

    # --- offsets ---

    def _named(self, topic: Any, version: int) -> Named:
        if version < IDS_FROM:
            return Named(topic.name)
        topic_id = UUID(bytes=topic.topic_id)
        names = (name for name, known in self.topics.items() if known.topic_id == topic_id)
        return Named(next(names, None), topic_id)

    def _commit(self, caller: Caller, version: int, request: Any) -> Fields:
        error = self._group_error(caller, "READ", request.group_id)
        rows: list[Row] = []
        taken: dict[Place, Committed] = {}
        for topic in request.topics:
            named = self._named(topic, version)
            for part in topic.partitions:
                refused = error or self._named_error(caller, named, part.partition_index)
                code = refused or self.groups.may_commit(
                    request.group_id, request.member_id, request.generation_id_or_member_epoch
                )
                if not code and len(part.committed_metadata or "") > METADATA_BYTES_MAX:
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if not code and named.name is not None:
                    metadata = part.committed_metadata or ""
                    offset = Committed(part.committed_offset, part.committed_leader_epoch, metadata)
                    taken[named.name, part.partition_index] = offset
                rows.append(Row(named, part.partition_index, {"error_code": int(code)}, bool(refused)))
        self.groups.commit(request.group_id, taken)
        return {"topics": _refused_first(rows)}

    def _named_error(self, caller: Caller, named: Named, index: int) -> ErrorCode:
        if named.name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return self._topic_error(caller, "READ", named.name, index)

    def _fetch_offsets(self, caller: Caller, version: int, request: Any) -> Fields:
        if version < SEVERAL_FROM[ApiKey.OFFSET_FETCH]:
            return self._offsets_of(caller, request.group_id, request.topics, version)
        return {
            "groups": [
                {"group_id": each.group_id, **self._offsets_of(caller, each.group_id, each.topics, version)}
                for each in request.groups
            ]
        }

    def _offsets_of(
        self, caller: Caller, group_id: str, topics: Iterable[Any] | None, version: int
    ) -> Fields:
        error = self._group_error(caller, "DESCRIBE", group_id)
        if error and version >= GROUP_ERROR_FROM:
            return {"error_code": int(error), "topics": []}
        group = self.groups.get(group_id)
        offsets = {} if group is None or error else group.offsets
        asked: list[tuple[Named, int]]
        if topics is None:
            visible = [place for place in offsets if self._may(caller, "DESCRIBE", "TOPIC", place[0])]
            has_ids = version >= IDS_FROM
            asked = [
                (Named(name, self.topics[name].topic_id if has_ids else None), index)
                for name, index in visible
            ]
        else:
            asked = [
                (self._named(topic, version), index) for topic in topics for index in topic.partition_indexes
            ]
        rows = []
        for named, index in asked:
            code = error or self._error_of_read(caller, named)
            found = None if code or named.name is None else offsets.get((named.name, index))
            offset, epoch, metadata = found or Committed(NO_OFFSET, -1, "")
            row = {"committed_offset": offset, "committed_leader_epoch": epoch, "metadata": metadata}
            rows.append(Row(named, index, row | {"error_code": int(code)}, bool(code)))
        return {"error_code": int(error), "topics": _by_topic(sorted(rows, key=lambda row: row.is_refused))}

    def _error_of_read(self, caller: Caller, named: Named) -> ErrorCode:
        if named.name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        is_allowed = self._may(caller, "DESCRIBE", "TOPIC", named.name)
        return ErrorCode.NONE if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _delete_offsets(self, caller: Caller, _version: int, request: Any) -> Fields:
        error = self._group_error(caller, "DELETE", request.group_id)
        group = self.groups.get(request.group_id)
        if not error and not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        if not error and group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        if not error and group is not None and group.member is not None and group.protocol_type != CONSUMERS:
            error = ErrorCode.NON_EMPTY_GROUP
        if error or group is None:
            return {"error_code": int(error), "topics": []}
        rows: list[Row] = []
        for topic in request.topics:
            for part in topic.partitions:
                index = part.partition_index
                refused = self._topic_error(caller, "READ", topic.name, index)
                code = refused or self.groups.delete_offset(group, (topic.name, index))
                rows.append(Row(Named(topic.name), index, {"error_code": int(code)}, bool(refused)))
        return {"error_code": 0, "topics": _refused_first(rows)}

    # --- groups ---

    def _describe_groups(self, caller: Caller, version: int, request: Any) -> Fields:
        rows = []
        for group_id in request.groups:
            error = self._group_error(caller, "DESCRIBE", group_id)
            refused = {"error_code": int(error), "group_id": group_id, "group_state": "", "protocol_type": ""}
            refused |= {"protocol_data": "", "members": []}
            row = refused if error else self.groups.described(group_id, version)
            if not row.get("error_code") and getattr(request, "include_authorized_operations", False):
                row = {**row, "authorized_operations": self._operations(caller, "GROUP", group_id)}
            rows.append(row)
        return {"groups": rows}

    def _list_groups(self, caller: Caller, _version: int, request: Any) -> Fields:
        states = getattr(request, "states_filter", None)
        sees_all = self._may(caller, "DESCRIBE", "CLUSTER", CLUSTER)
        rows = [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state,
                "group_type": "classic",
            }
            for group in self.groups.all()
            if self.coordinator(group.group_id) == caller.broker
            and (sees_all or self._may(caller, "DESCRIBE", "GROUP", group.group_id))
            and (not states or group.state in states)
        ]
        return {"error_code": 0, "groups": rows}

    def _delete_groups(self, caller: Caller, _version: int, request: Any) -> Fields:
        rows = []
        for group_id in dict.fromkeys(request.groups_names):
            error = self._group_error(caller, "DELETE", group_id) or self.groups.delete(group_id)
            rows.append({"group_id": group_id, "error_code": int(error)})
        return {"results": rows}


def _refused_first(rows: Iterable[Row]) -> list[Fields]:
    """The rows by topic, those first that were refused before the group was asked, as Kafka has them."""
    return _by_topic(sorted(rows, key=lambda row: not row.is_refused))


def _by_topic(rows: Iterable[Row]) -> list[Fields]:
    topics: dict[Named, Fields] = {}
    for named, index, fields, _ in rows:
        made: Fields = {"name": named.name or "", "partitions": []}
        if named.topic_id is not None:
            made["topic_id"] = named.topic_id
        topics.setdefault(named, made)["partitions"].append({"partition_index": index, **fields})
    return list(topics.values())


def api_versions(version: int) -> tuple[int, Fields]:
    """The answer to ApiVersions, and the version that it is in."""
    is_known = version <= OFFERED[ApiKey.API_VERSIONS].max
    offered = [
        {"api_key": int(api), "min_version": low, "max_version": high}
        for api, (low, high) in OFFERED.items()
        if is_known or api is ApiKey.API_VERSIONS
    ]
    error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
    return version if is_known else 0, {"error_code": int(error), "api_keys": offered}
