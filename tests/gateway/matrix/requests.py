# SPDX-License-Identifier: Apache-2.0
"""The kinds of request that the sets of permissions are tried with, in several versions.

Requests marked `is_change` may delete offsets; the offsets are committed again after each of them. No other request
changes anything: commits repeat the committed offsets, and requests that could create, alter or delete something else
only validate, or name what does not exist.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from protocol.apis import ApiKey
from protocol.kafka_python_messages import find_request_and_response_classes

Fields: TypeAlias = dict[str, Any]
TopicIds: TypeAlias = Mapping[str, UUID]

TOPICS: Final = ("t-one", "t-two", "other-topic")
"""The topics that exist."""
NAMES: Final = (*TOPICS, "t-absent", "absent")
NEW_TOPICS: Final = ("t-absent", "t-missing", "absent")
PARTITIONS: Final = (0, 1)
"""The partitions that requests name; only the first exists."""
GROUPS: Final = ("g-one", "g-two", "other-group")
"""The groups that exist, each with offsets of all topics."""
GROUP_IDS: Final = (*GROUPS, "g-absent")
OFFSET: Final = 5
TIMEOUT_MS: Final = 60_000
NO_ACLS: Final = "User:in-no-set"
"""The principal of the one ACL that requests about ACLs name; no user has it."""

TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32
ANY, LITERAL = 1, 3


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    name: str
    """How it differs from the others of its kind."""
    api: ApiKey
    version: int
    fields: Fields
    is_change: bool = False
    """Whether it deletes offsets, if the user may do that."""

    def message(self) -> Any:
        """The request as kafka-python has it."""
        return made(find_request_and_response_classes(self.api)[0], self.fields)


@dataclass(frozen=True, slots=True)
class Kind:
    """Requests that make one case for each set of permissions."""

    name: str
    requests: tuple[Asked, ...]


def made(cls: Any, fields: Fields) -> Any:
    """A message, or a part of one, of kafka-python."""
    built = {}
    for name, value in fields.items():
        part = cls.fields[name]
        if part.is_struct_array() and value is not None:
            built[name] = [made(part.data_class, each) for each in value]
        else:
            built[name] = value
    return cls(**built)


def absent_ids() -> dict[str, UUID]:
    """Ids that no topic has, for all NAMES."""
    return {name: UUID(int=77 + index) for index, name in enumerate(NAMES)}


def kinds(ids: TopicIds) -> list[Kind]:
    """All kinds, in the order of the recording; `ids` are those of NAMES."""
    found = [*_of_members(), *_of_offsets(ids), *_of_groups(), *_of_topics(ids), *_of_settings()]
    return [*found, *_of_acls(), *_of_the_cluster()]


def commit_of(
    group: str, topics: Iterable[str], ids: TopicIds | None = None, partitions: Iterable[int] = PARTITIONS
) -> Fields:
    """The OffsetCommit of a consumer that is no member, of OFFSET for all of these partitions."""
    rows = [
        {"partition_index": each, "committed_offset": OFFSET, "committed_metadata": "m"}
        for each in partitions
    ]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [_named(name, ids) | {"partitions": rows} for name in topics],
    }


def _named(name: str, ids: TopicIds | None) -> Fields:
    return {"name": name} if ids is None else {"topic_id": ids[name]}


def _asked(
    api: ApiKey, versions: Iterable[int], fields: Fields, name: str = "", *, is_change: bool = False
) -> list[Asked]:
    return [
        Asked(f"{name} v{version}".lstrip(), api, version, fields, is_change=is_change)
        for version in versions
    ]


def _kind(name: str, *requests: Iterable[Asked]) -> Kind:
    return Kind(name, tuple(each for some in requests for each in some))


def _of_each(
    name: str, api: ApiKey, versions: Iterable[int], fields: Mapping[str, Fields], *, is_change: bool = False
) -> Kind:
    """A kind whose requests name one group or topic each."""
    several = (_asked(api, versions, each, of, is_change=is_change) for of, each in fields.items())
    return _kind(name, *several)


def _of_members() -> Iterator[Kind]:
    """Requests of members, sent by users who are none."""
    joining = {
        "session_timeout_ms": 6000,
        "rebalance_timeout_ms": 6000,
        "member_id": "stranger",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"x"}],
    }
    member = {"generation_id": 1, "member_id": "stranger"}
    leaving = {"member_id": "stranger", "members": [{"member_id": "stranger"}]}
    protocol = {"protocol_type": "consumer", "protocol_name": "range", "assignments": []}

    def by_group(fields: Fields) -> dict[str, Fields]:
        return {group: {"group_id": group, **fields} for group in GROUP_IDS}

    yield _of_each("join", ApiKey.JOIN_GROUP, (0, 4, 9), by_group(joining))
    yield _of_each("sync", ApiKey.SYNC_GROUP, (0, 3, 5), by_group(member | protocol))
    yield _of_each(
        "sync without protocol type", ApiKey.SYNC_GROUP, (5,), by_group(member | {"assignments": []})
    )
    yield _of_each("heartbeat", ApiKey.HEARTBEAT, (0, 4), by_group(member))
    new = {"member_id": "stranger", "member_epoch": 0}
    yield _of_each("heartbeat of KIP-848", ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, 1), by_group(new))
    yield _of_each("leave", ApiKey.LEAVE_GROUP, (0, 2, 4), by_group(leaving))


def _of_offsets(ids: TopicIds) -> Iterator[Kind]:
    commit, fetch = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
    two = GROUPS[:2]
    yield _of_each(
        "commit of one topic", commit, (2, 8), {each: commit_of("g-one", [each]) for each in NAMES}
    )
    yield _of_each(
        "commit of several topics", commit, (2, 5, 8, 9), {each: commit_of(each, NAMES) for each in two}
    )
    yield _of_each("commit by topic ids", commit, (10,), {each: commit_of(each, NAMES, ids) for each in two})
    yield _of_each("fetch of one topic", fetch, (1, 5), {each: _fetch("g-one", [each]) for each in NAMES})
    yield _of_each(
        "fetch of several topics", fetch, (1, 2, 5, 7), {each: _fetch(each, NAMES) for each in two}
    )
    yield _of_each("fetch of no topics", fetch, (2, 5, 7), {each: _fetch(each, ()) for each in two})
    yield _of_each("fetch of all topics", fetch, (2, 5, 7), {each: _fetch(each, None) for each in two})
    yield _kind("fetch of several groups", _asked(fetch, (8, 9), _fetch_groups(NAMES)))
    yield _kind("fetch of several groups and all topics", _asked(fetch, (8, 9), _fetch_groups(None)))
    yield _kind("fetch by topic ids", _asked(fetch, (10,), _fetch_groups(NAMES, ids)))
    yield _of_each(
        "delete offsets of one topic",
        ApiKey.OFFSET_DELETE,
        (0,),
        {each: _delete_offsets("g-one", [each]) for each in NAMES},
        is_change=True,
    )
    yield _of_each(
        "delete offsets of several topics",
        ApiKey.OFFSET_DELETE,
        (0,),
        {each: _delete_offsets(each, NAMES) for each in GROUP_IDS},
        is_change=True,
    )


def _fetch(group: str, topics: Iterable[str] | None) -> Fields:
    asked = (
        None if topics is None else [{"name": each, "partition_indexes": [*PARTITIONS]} for each in topics]
    )
    return {"group_id": group, "topics": asked, "require_stable": False}


def _fetch_groups(topics: Iterable[str] | None, ids: TopicIds | None = None) -> Fields:
    asked = (
        None
        if topics is None
        else [_named(each, ids) | {"partition_indexes": [*PARTITIONS]} for each in topics]
    )
    return {"groups": [{"group_id": each, "topics": asked} for each in GROUP_IDS], "require_stable": True}


def _delete_offsets(group: str, topics: Iterable[str]) -> Fields:
    rows = [{"name": each, "partitions": [{"partition_index": 0}]} for each in topics]
    return {"group_id": group, "topics": rows}


def _of_groups() -> Iterator[Kind]:
    find, describe, delete = ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS
    yield _of_each(
        "find one coordinator", find, (0, 2, 3), {each: {"key": each, "key_type": 0} for each in GROUP_IDS}
    )
    yield _kind(
        "find several coordinators",
        _asked(find, (4, 5, 6), {"key_type": 0, "coordinator_keys": [*GROUP_IDS]}),
    )
    yield _of_each(
        "describe one group", describe, (0, 5, 6), {each: {"groups": [each]} for each in GROUP_IDS}
    )
    several: Fields = {"groups": [*GROUP_IDS]}
    yield _kind("describe several groups", _asked(describe, (0, 3, 5, 6), several))
    yield _kind(
        "describe with authorized operations",
        _asked(describe, (3, 5, 6), several | {"include_authorized_operations": True}),
    )
    yield _kind(
        "list groups", _asked(ApiKey.LIST_GROUPS, (0, 4, 5), {"states_filter": [], "types_filter": []})
    )
    yield _of_each(
        "delete one group",
        delete,
        (0, 2),
        {each: {"groups_names": [each]} for each in GROUP_IDS},
        is_change=True,
    )
    yield _kind(
        "delete several groups", _asked(delete, (0, 2), {"groups_names": [*GROUP_IDS]}, is_change=True)
    )
    yield _kind(
        "delete a group twice",
        _asked(delete, (0, 2), {"groups_names": ["g-one", *GROUP_IDS, "g-two"]}, is_change=True),
    )


def _of_topics(ids: TopicIds) -> Iterator[Kind]:
    metadata = ApiKey.METADATA
    several: Fields = {"topics": [{"name": each} for each in NAMES], "allow_auto_topic_creation": False}
    everything: Fields = {"topics": None, "allow_auto_topic_creation": False}
    operations = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    by_id: Fields = several | {"topics": [{"topic_id": ids[each], "name": None} for each in NAMES]}
    yield _of_each(
        "metadata of one topic",
        metadata,
        (4, 13),
        {each: several | {"topics": [{"name": each}]} for each in NAMES},
    )
    yield _kind("metadata of several topics", _asked(metadata, (4, 8, 12), several))
    yield _kind("metadata of all topics", _asked(metadata, (4, 8, 12), everything))
    yield _kind(
        "metadata by topic ids",
        _asked(metadata, (12, 13), by_id),
    )
    yield _kind("metadata with authorized operations", _asked(metadata, (8, 10), several | operations))
    yield _kind(
        "describe partitions",
        _asked(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0,), {"topics": [{"name": each} for each in NAMES]}),
    )
    wanted = [{"name": each, "num_partitions": 1, "replication_factor": 1} for each in ("t-one", *NEW_TOPICS)]
    yield _kind(
        "create topics", _asked(ApiKey.CREATE_TOPICS, (2, 7), {"topics": wanted, "validate_only": True})
    )
    unknown: Fields = {
        "timeout_ms": TIMEOUT_MS,
        "topic_names": [*NEW_TOPICS],
        "topics": [{"name": each} for each in NEW_TOPICS],
    }
    yield _kind("delete topics", _asked(ApiKey.DELETE_TOPICS, (1, 5, 6), unknown))
    grown = [{"name": each, "count": 5} for each in NAMES]
    yield _kind(
        "create partitions",
        _asked(
            ApiKey.CREATE_PARTITIONS,
            (0, 3),
            {"topics": grown, "timeout_ms": TIMEOUT_MS, "validate_only": True},
        ),
    )
    yield from _of_records()


def _of_records() -> Iterator[Kind]:
    from_start = [{"partition_index": each, "timestamp": -2} for each in PARTITIONS]
    positions = {"topics": [{"name": each, "partitions": from_start} for each in NAMES]}
    yield _kind("list offsets", _asked(ApiKey.LIST_OFFSETS, (1, 4, 7), positions))
    none = [{"partition_index": 0, "offset": 0}]
    deleted = {"topics": [{"name": each, "partitions": none} for each in NAMES], "timeout_ms": TIMEOUT_MS}
    yield _kind("delete records", _asked(ApiKey.DELETE_RECORDS, (0, 2), deleted))
    epochs = {
        "replica_id": -1,
        "topics": [{"topic": each, "partitions": [{"partition": 0}]} for each in NAMES],
    }
    yield _kind("offset for leader epoch", _asked(ApiKey.OFFSET_FOR_LEADER_EPOCH, (3, 4), epochs))
    producers = {"topics": [{"name": each, "partition_indexes": [0]} for each in NAMES]}
    yield _kind("describe producers", _asked(ApiKey.DESCRIBE_PRODUCERS, (0,), producers))
    yield _kind("init producer id", _asked(ApiKey.INIT_PRODUCER_ID, (0, 4), {"transactional_id": None}))


def _of_settings() -> Iterator[Kind]:
    for of, kind, names, setting in (
        ("topics", TOPIC_RESOURCE, NAMES, ("retention.ms", "86400000")),
        ("a broker", BROKER_RESOURCE, ("1",), ("log.cleaner.threads", "1")),
        ("groups", GROUP_RESOURCE, GROUPS, ("consumer.session.timeout.ms", "46000")),
    ):
        name, value = setting
        of_each = [{"resource_type": kind, "resource_name": each} for each in names]
        asked = {"resources": [each | {"configuration_keys": [name]} for each in of_each]}
        configs = [{"name": name, "config_operation": 0, "value": value}]
        altered = {"resources": [each | {"configs": configs} for each in of_each], "validate_only": True}
        yield _kind(f"describe settings of {of}", _asked(ApiKey.DESCRIBE_CONFIGS, (1, 4), asked))
        yield _kind(f"alter settings of {of}", _asked(ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1), altered))


def _of_acls() -> Iterator[Kind]:
    """About the one ACL of NO_ACLS; creating it again makes none, and nothing is deleted."""
    asked = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": NO_ACLS,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    yield _kind("describe acls", _asked(ApiKey.DESCRIBE_ACLS, (1, 3), asked))
    created = {
        "resource_type": TOPIC_RESOURCE,
        "resource_name": "absent",
        "resource_pattern_type": LITERAL,
        "principal": NO_ACLS,
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    yield _kind("create acls", _asked(ApiKey.CREATE_ACLS, (1, 3), {"creations": [created]}))
    nothing = asked | {"principal_filter": f"{NO_ACLS}-either"}
    yield _kind("delete acls", _asked(ApiKey.DELETE_ACLS, (1, 3), {"filters": [nothing]}))


def _of_the_cluster() -> Iterator[Kind]:
    operations = {"include_cluster_authorized_operations": True}
    yield _kind("describe the cluster", _asked(ApiKey.DESCRIBE_CLUSTER, (0, 2), {}))
    yield _kind("describe the cluster with operations", _asked(ApiKey.DESCRIBE_CLUSTER, (0, 2), operations))
    quotas = {"components": [{"entity_type": "user", "match_type": 0, "match": "in-no-set"}]}
    yield _kind("describe quotas", _asked(ApiKey.DESCRIBE_CLIENT_QUOTAS, (0, 1), quotas))
    entry = {
        "entity": [{"entity_type": "user", "entity_name": "in-no-set"}],
        "ops": [{"key": "request_percentage", "value": 50.0, "remove": False}],
    }
    yield _kind(
        "alter quotas",
        _asked(ApiKey.ALTER_CLIENT_QUOTAS, (0, 1), {"entries": [entry], "validate_only": True}),
    )
    users = {"users": [{"name": "in-no-set"}]}
    yield _kind("describe scram users", _asked(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, (0,), users))
    yield _kind("list reassignments", _asked(ApiKey.LIST_PARTITION_REASSIGNMENTS, (0,), {"topics": None}))
    cancelled = [{"name": "t-one", "partitions": [{"partition_index": 0, "replicas": None}]}]
    yield _kind(
        "cancel a reassignment", _asked(ApiKey.ALTER_PARTITION_REASSIGNMENTS, (0, 1), {"topics": cancelled})
    )
    elected = [{"topic": "t-one", "partitions": [0]}]
    yield _kind("elect leaders", _asked(ApiKey.ELECT_LEADERS, (0, 2), {"topic_partitions": elected}))
