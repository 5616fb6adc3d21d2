# SPDX-License-Identifier: Apache-2.0
"""Reads, commits and deletes the offsets of groups."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from coordinator.cli.cluster.client import Client, RefusedAnswer
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cluster_requests import offsets as requests
from coordinator.cluster_requests.model import Errors, Offsets, TopicPartition, TransferredOffset
from coordinator.cluster_requests.offsets import commit_offsets, fetch_offsets
from coordinator.cluster_requests.retrying import RETRIABLE
from protocol.errors import ErrorCode, error_name

OFFSETS_AT_ONCE: Final = 5_000
"""The maximum number of offsets that one request commits."""

Failures = dict[TopicPartition, str]
"""The partitions that were refused, with the name of the error."""


def fetch_committed_offsets(
    client: Client, groups: Sequence[str]
) -> dict[str, list[CommittedOffset] | RefusedAnswer]:
    """Return the offsets that each group has committed, sorted by topic and partition; none for a missing group."""
    return client.ask_group_coordinators("reading the offsets of", groups, _committed_on)


def _committed_on(
    connection: NodeConnection, groups: Sequence[str]
) -> Mapping[str, list[CommittedOffset] | RefusedAnswer]:
    return {
        group: RefusedAnswer(found.error_code) if found.error_code else sorted(_rows(found.offsets))
        for group, found in connection.ask(fetch_offsets(groups)).items()
    }


def _rows(offsets: Offsets) -> Iterator[CommittedOffset]:
    for place, (offset, leader_epoch, metadata) in offsets.items():
        yield CommittedOffset(place.topic, place.partition, offset, leader_epoch, metadata)


def commit(client: Client, group: str, offsets: Iterable[CommittedOffset]) -> Failures:
    """Commit offsets for a group without members, which need not exist; return the partitions that were refused."""
    rows = list(offsets)
    failures: Failures = {}
    for start in range(0, len(rows), OFFSETS_AT_ONCE):
        part = rows[start : start + OFFSETS_AT_ONCE]
        failures |= client.ask_group_coordinator(
            "setting offsets of", group, partial(commit_at_coordinator, group=group, offsets=part)
        )
    return failures


def commit_at_coordinator(
    connection: NodeConnection, group: str, offsets: Sequence[CommittedOffset]
) -> Failures | RefusedAnswer:
    """Commit offsets over the connection to the group's coordinator."""
    wanted = {
        each.place: TransferredOffset(each.offset, each.leader_epoch, each.metadata) for each in offsets
    }
    return _failures(connection.ask(commit_offsets(group, wanted)))


def delete_offsets(client: Client, group: str, places: Iterable[TopicPartition]) -> Failures:
    """Delete committed offsets; return the refused partitions. Raises CommandError if the whole request is refused."""
    request = requests.delete_offsets(group, places)

    def ask(connection: NodeConnection) -> Failures | RefusedAnswer:
        deleted = connection.ask(request)
        if deleted.error_code != ErrorCode.NONE:
            return RefusedAnswer(deleted.error_code)
        return _failures(deleted.errors)

    return client.ask_group_coordinator("deleting offsets of", group, ask)


def _failures(errors: Errors) -> Failures | RefusedAnswer:
    """Return the names of the errors; the refusal of all partitions if an error soon passes."""
    not_ready = [code for code in errors.values() if code in RETRIABLE]
    if not_ready:
        return RefusedAnswer(not_ready[0])
    return {place: error_name(code) for place, code in errors.items()}
