# SPDX-License-Identifier: Apache-2.0
"""The ordinary request of every api: what a script does not say is as here.

`ordinary` in each scenario is a consumer that subscribes to the topic `apples` and offers the protocol `range`.
"""

from typing import TYPE_CHECKING, Any, Final

from protocol.apis import ApiKey
from tests.support.consumer_protocol import encode_assignment, encode_subscription

if TYPE_CHECKING:
    from tests.kafka.differential.script import Script

TOPICS: Final = {"apples": 3, "pears": 2, "plums": 1}
"""The topics that are there for all scenarios, with the number of their partitions; no scenario changes them."""

NO_TOPIC: Final = "missing"
SUBSCRIPTION: Final = encode_subscription(["apples"], version=0)
ASSIGNMENT: Final = encode_assignment({"apples": [0, 1, 2]}, version=0)
BLOBS: Final = {SUBSCRIPTION: "<subscribes to apples>", ASSIGNMENT: "<assigns apples 0 1 2>"}
"""How transcripts write these."""
SESSION_MS: Final = 30_000
REBALANCE_MS: Final = 30_000


def protocols(*names: str, metadata: bytes = SUBSCRIPTION) -> list[dict[str, Any]]:
    """The protocols of a JoinGroup, the preferred one first, all with this metadata."""
    return [{"name": name, "metadata": metadata} for name in names]


def ordinary_fields(api: ApiKey, version: int, script: "Script") -> dict[str, Any]:
    """The fields of the ordinary request; those that the version lacks are not sent."""
    make = _ORDINARY.get(api)
    return {} if make is None else make(version, script)


def _join(version: int, script: "Script") -> dict[str, Any]:
    return {
        "group_id": script.group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
    }


def _sync(version: int, script: "Script") -> dict[str, Any]:
    return {
        "group_id": script.group,
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [],
    }


def _heartbeat(version: int, script: "Script") -> dict[str, Any]:
    return {"group_id": script.group, "generation_id": 1}


def _consumer_heartbeat(version: int, script: "Script") -> dict[str, Any]:
    """Of a member that joins."""
    return {
        "group_id": script.group,
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": REBALANCE_MS,
        "subscribed_topic_names": ["apples"],
        "topic_partitions": [],
    }


def _of_group(version: int, script: "Script") -> dict[str, Any]:
    return {"group_id": script.group}


def _commit(version: int, script: "Script") -> dict[str, Any]:
    return {
        "group_id": script.group,
        "generation_id_or_member_epoch": -1,
        "retention_time_ms": -1,
        "topics": [commit_topic(script, "apples", (0, 7))],
    }


def commit_topic(script: "Script", name: str, *offsets: tuple[int, int], **more: Any) -> dict[str, Any]:
    """A topic of an OffsetCommit: (partition, offset) pairs, `more` fields for each partition.

    It has the name and, where there is one, the id, so that it fits every version.
    """
    return {
        "name": name,
        "topic_id": script.server.topic_ids.get(name),
        "partitions": [
            {
                "partition_index": partition,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "committed_metadata": "",
                **more,
            }
            for partition, offset in offsets
        ],
    }


def _fetch(version: int, script: "Script") -> dict[str, Any]:
    wanted = [fetch_topic(script, "apples", 0, 1, 2)]
    if version < 8:
        return {"group_id": script.group, "topics": by_name(wanted), "require_stable": False}
    return {"groups": [fetch_group(script.group, wanted)], "require_stable": False}


def fetch_topic(script: "Script", name: str, *partitions: int) -> dict[str, Any]:
    """A topic of an OffsetFetch, by name and, where there is one, by id."""
    return {
        "name": name,
        "topic_id": script.server.topic_ids.get(name),
        "partition_indexes": list(partitions),
    }


def by_name(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The topics of an OffsetFetch as versions have them that know no ids."""
    return [{name: value for name, value in topic.items() if name != "topic_id"} for topic in topics]


def fetch_group(
    group_id: str, topics: list[dict[str, Any]] | None, member_id: str | None = None, member_epoch: int = -1
) -> dict[str, Any]:
    """A group of an OffsetFetch from v8 on."""
    return {"group_id": group_id, "member_id": member_id, "member_epoch": member_epoch, "topics": topics}


def _delete_offsets(version: int, script: "Script") -> dict[str, Any]:
    return {"group_id": script.group, "topics": [delete_topic("apples", 0)]}


def delete_topic(name: str, *partitions: int) -> dict[str, Any]:
    """A topic of an OffsetDelete."""
    return {"name": name, "partitions": [{"partition_index": index} for index in partitions]}


def _describe(version: int, script: "Script") -> dict[str, Any]:
    return {"groups": [script.group], "include_authorized_operations": False}


def _list(version: int, script: "Script") -> dict[str, Any]:
    return {"states_filter": [], "types_filter": []}


def _delete(version: int, script: "Script") -> dict[str, Any]:
    return {"groups_names": [script.group]}


def _find(version: int, script: "Script") -> dict[str, Any]:
    return {"key": script.group, "key_type": 0, "coordinator_keys": [script.group]}


def _api_versions(version: int, script: "Script") -> dict[str, Any]:
    return {"client_software_name": "a-client", "client_software_version": "1.0"}


_ORDINARY: Final = {
    ApiKey.JOIN_GROUP: _join,
    ApiKey.SYNC_GROUP: _sync,
    ApiKey.HEARTBEAT: _heartbeat,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_heartbeat,
    ApiKey.LEAVE_GROUP: _of_group,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.OFFSET_FETCH: _fetch,
    ApiKey.OFFSET_DELETE: _delete_offsets,
    ApiKey.DESCRIBE_GROUPS: _describe,
    ApiKey.LIST_GROUPS: _list,
    ApiKey.DELETE_GROUPS: _delete,
    ApiKey.FIND_COORDINATOR: _find,
    ApiKey.API_VERSIONS: _api_versions,
}
