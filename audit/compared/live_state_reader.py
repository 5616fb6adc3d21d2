# SPDX-License-Identifier: Apache-2.0
"""The groups of a cluster as its coordinators report them over Kafka's protocol: ours or any broker's."""

import logging
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from audit.errors import AuditError

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""The seconds for which a coordinator may load or move before the audit gives up."""
GROUPS_AT_ONCE: Final = 200
ANSWER_S: Final = 5.0
"""The seconds within which a server has to respond to the first request."""
_CORRELATION_ID: Final = b"\0\0\0\7"
_VERSIONS_REQUEST: Final = b"\0\0\0\x0a" + b"\0\x12\0\0" + _CORRELATION_ID + b"\xff\xff"
"""ApiVersions v0, which every server answers: length, api key 18, version, correlation id, no client id."""
CLASSIC: Final = ("", "classic", "Classic")
"""The types under which groups of the classic protocol are listed; before Kafka 3.8 there is no type."""

OffsetKey = tuple[str, str, int]
"""The group, topic and partition of a committed offset."""


class LiveOffset(msgspec.Struct, frozen=True):
    """A committed offset that a coordinator reports."""

    offset: int
    leader_epoch: int
    metadata: str


class LiveGroup(msgspec.Struct, frozen=True):
    """A group that a coordinator reports; `members` are their ids, or None if the group could not be described."""

    state: str
    protocol_type: str
    classic: bool
    members: frozenset[str] | None


class LiveState(msgspec.Struct, frozen=True):
    """The state of a cluster, which was read from `started_ms` to `ended_ms`."""

    groups: dict[str, LiveGroup]
    offsets: dict[OffsetKey, LiveOffset]
    started_ms: int
    ended_ms: int


def check_server_responds(address: str) -> None:
    """Raise AuditError unless a server at one of these addresses, with commas between them, speaks Kafka's protocol.

    That takes seconds at most; a client would try for half a minute.
    """
    failures = []
    for one in address.split(","):
        host, _, port = one.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise AuditError(f"--against {address}: expected HOST:PORT")
        try:
            _ask_versions(host.strip("[]"), int(port))
        except OSError as error:
            failures.append(error.strerror or str(error))
        else:
            return
    raise AuditError(f"--against {address}: no answer: {failures[0]}")


def _ask_versions(host: str, port: int) -> None:
    """Ask for the supported api versions. Raises OSError."""
    with socket.create_connection((host, port), ANSWER_S) as connection:
        connection.sendall(_VERSIONS_REQUEST)
        answer = connection.recv(8, socket.MSG_WAITALL)
    if answer[4:] != _CORRELATION_ID:
        raise OSError("what listens there does not speak Kafka's protocol")


def read_live_state(address: str, only: Collection[str] | None = None) -> LiveState:
    """Ask all brokers of the cluster at `address` for their groups, or for `only` these. Raises AuditError."""
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=address, client_id="groupkeeper-audit", request_timeout_ms=30_000
        )
    except (KafkaError, OSError, ValueError) as error:
        raise AuditError(f"--against {address}: no answer: {error}") from error
    try:
        return _ask(admin, only)
    except (KafkaError, OSError) as error:
        raise AuditError(f"--against {address}: {error}") from error
    finally:
        admin.close()


def _ask(admin: Any, only: Collection[str] | None) -> LiveState:
    started = _now()
    listed = {group["group_id"]: group for group in _patiently(admin.list_groups)}
    chosen = sorted(listed if only is None else listed.keys() & set(only))
    described: dict[str, Any] = {}
    offsets: dict[OffsetKey, LiveOffset] = {}
    for part in _parts(chosen):
        described |= _described(admin, [name for name in part if _is_classic(listed[name])])
        answers = _patiently(partial(admin.list_group_offsets, dict.fromkeys(part)))
        for group, answer in answers.items():
            for place, committed in answer.items():
                offsets[group, place.topic, place.partition] = LiveOffset(
                    committed.offset, committed.leader_epoch, committed.metadata or ""
                )
    groups = {name: _group(listed[name], described.get(name)) for name in chosen}
    return LiveState(groups, offsets, started, _now())


def _described(admin: Any, names: Sequence[str]) -> dict[str, Any]:
    if not names:
        return {}
    try:
        found: dict[str, Any] = _patiently(lambda: admin.describe_groups(names))
        return found
    except (ValueError, TypeError, IndexError):
        # The client fails to decode some member metadata, which members may fill with anything: find the groups that
        # fail.
        if len(names) == 1:
            return {}
        half = len(names) // 2
        return _described(admin, names[:half]) | _described(admin, names[half:])


def _group(listed: Any, described: Any | None) -> LiveGroup:
    members = None
    state = listed.get("group_state") or ""
    if described is not None and not described["error"]:
        members = frozenset(member["member_id"] for member in described["members"])
        state = described["group_state"]
    return LiveGroup(state, listed["protocol_type"], _is_classic(listed), members)


def _is_classic(listed: Any) -> bool:
    return (listed.get("group_type") or "") in CLASSIC


def _patiently(call: Callable[[], T]) -> T:
    """Call again while a coordinator loads its partition, or a partition moves."""
    from kafka.errors import KafkaError

    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except KafkaError as error:
            if not getattr(error, "retriable", False) or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), GROUPS_AT_ONCE):
        yield names[start : start + GROUPS_AT_ONCE]


def _now() -> int:
    return int(time.time() * 1000)
