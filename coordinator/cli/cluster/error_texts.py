# SPDX-License-Identifier: Apache-2.0
"""Texts for Kafka's errors: the likely reason, and where to look."""

from collections.abc import Mapping
from typing import Any, Final

from coordinator.cluster_requests.retrying import RetryLater
from protocol.errors import ErrorCode, error_name

_NO_PERMISSION: Final = "the cluster's ACLs do not allow it to the user of --command-config"
_NO_LEADER: Final = "the partition has no leader now; `groupkeeper topics describe` shows when it has one"

WAYS_OUT: Final[Mapping[int, str]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the log is being loaded, or cannot be written; behind a gateway the group "
    "may have members at the cluster: the server's log has the reason; or it is being given back",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no node coordinates the group now; `groupkeeper status` shows why",
    ErrorCode.NOT_COORDINATOR: "the group's partition is moved, or cannot be loaded; `groupkeeper status` shows it",
    ErrorCode.LEADER_NOT_AVAILABLE: _NO_LEADER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _NO_LEADER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`groupkeeper topics list` shows the topics and their partitions",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata is longer than the server's offset.metadata.max.bytes",
    ErrorCode.REQUEST_TIMED_OUT: "the brokers have not confirmed it in time; try again with a longer --timeout",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _NO_PERMISSION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _NO_PERMISSION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _NO_PERMISSION,
}
"""The likely reason of an error, and where to look, for errors whose names do not say it."""

_WAYS_OUT_BY_NAME: Final = {error_name(code): way_out for code, way_out in WAYS_OUT.items()} | {
    ErrorCode.UNKNOWN_MEMBER_ID.name: "it has members; stop them first, or remove them with --force"
}


def explain_error(code: int) -> str:
    """Return the name of a Kafka error, with the way out in parentheses if there is one to name."""
    return f"{error_name(code)}{format_way_out(code)}"


def describe_timeout(answer: RetryLater, timeout_s: float) -> str:
    """Return a line that names the error which has lasted for `timeout_s`."""
    still = f"still {error_name(answer.code)} after {timeout_s:g} s"
    return f"{answer.doing}: {still}{format_way_out(answer.code)}"


def format_way_out(code: int) -> str:
    """Return the way out of a Kafka error in parentheses, after a space; an empty string if there is none to name."""
    return f" ({WAYS_OUT[code]})" if code in WAYS_OUT else ""


def describe_refused_offsets(group: str, refused: Mapping[Any, str]) -> str:
    """Return a line that names the partitions whose offsets were refused, and the ways out of their errors."""
    each = ", ".join(f"{place} ({error})" for place, error in refused.items())
    ways_out = dict.fromkeys(filter(None, map(_WAYS_OUT_BY_NAME.get, refused.values())))
    return "; ".join([f"not set in group {group}: {each}", *ways_out])
