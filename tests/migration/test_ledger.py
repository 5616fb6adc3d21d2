# SPDX-License-Identifier: Apache-2.0
"""The ledger of a partition: what its marks, and what is true for a moment, say of a group."""

import pytest

from coordinator.groups.group_totals import GroupTotals
from coordinator.migration.ledger import MigrationLedger, ledger_group_id
from coordinator.migration.model import Location, Mark
from protocol.newtypes import GroupId, Partition
from storage.format.records import OffsetCommitRecord

GROUP = GroupId("g")
NOW_MS = 1_000
WALL_MS = 1 << 40


@pytest.fixture
def groups() -> set[GroupId]:
    """The groups in memory."""
    return set()


@pytest.fixture
def ledger(groups: set[GroupId]) -> MigrationLedger:
    return MigrationLedger(ledger_group_id(Partition(0), 1), GroupTotals(), groups)


def mark(ledger: MigrationLedger, value: Mark | None, wall_ms: int = WALL_MS) -> None:
    ledger.apply(ledger.make_mark(GROUP, value, wall_ms))


def test_a_group_without_a_mark_may_be_at_the_cluster(ledger: MigrationLedger) -> None:
    assert ledger.locate(GROUP, NOW_MS) is Location.AT_CLUSTER


@pytest.mark.parametrize(
    ("value", "location"),
    [(Mark.ADOPTED, Location.HERE), (Mark.BEGUN, Location.HERE), (Mark.UNDER_WAY, Location.MIGRATING)],
)
def test_the_mark_says_where_a_group_is(ledger: MigrationLedger, value: Mark, location: Location) -> None:
    ledger.note_confirmed_absent(GROUP, NOW_MS + 1, NOW_MS)
    mark(ledger, value)
    assert ledger.locate(GROUP, NOW_MS) is location
    mark(ledger, None)
    assert ledger.locate(GROUP, NOW_MS) is Location.AT_CLUSTER


def test_a_group_that_is_being_moved_is_neither_here_nor_there(ledger: MigrationLedger) -> None:
    ledger.migrating.add(GROUP)
    assert ledger.locate(GROUP, NOW_MS) is Location.MIGRATING


def test_a_group_is_nowhere_until_a_moment_has_passed(ledger: MigrationLedger) -> None:
    ledger.note_confirmed_absent(GROUP, NOW_MS + 1, NOW_MS)
    assert ledger.locate(GROUP, NOW_MS) is Location.NOWHERE
    assert ledger.locate(GROUP, NOW_MS + 1) is Location.AT_CLUSTER


def test_only_a_confirmed_absent_group_gets_a_mark_with_its_first_record(ledger: MigrationLedger) -> None:
    assert ledger.make_first_mark(GROUP, WALL_MS) is None
    ledger.note_confirmed_absent(GROUP, NOW_MS + 1, NOW_MS)
    first = ledger.make_first_mark(GROUP, WALL_MS)
    assert isinstance(first, OffsetCommitRecord)
    ledger.apply(first)
    assert ledger.get_mark(GROUP) == Mark.BEGUN
    assert ledger.make_first_mark(GROUP, WALL_MS) is None


def test_removals_are_counted_apart_from_the_marks(ledger: MigrationLedger) -> None:
    for number in range(3):
        assert ledger.removal_count == number
        ledger.apply(ledger.make_removal_count(WALL_MS))
    assert ledger.find_expired([ledger.group_id], WALL_MS) == []


@pytest.mark.parametrize(
    ("value", "is_here", "is_moving", "newer_ms", "expires"),
    [
        (Mark.BEGUN, False, False, 0, True),
        (Mark.BEGUN, False, False, 1, False),
        (Mark.BEGUN, True, False, 0, False),
        (Mark.BEGUN, False, True, 0, False),
        (Mark.ADOPTED, False, False, 0, False),
        (Mark.UNDER_WAY, False, False, 0, False),
    ],
)
def test_a_mark_expires_once_the_group_that_began_here_is_gone(
    ledger: MigrationLedger,
    groups: set[GroupId],
    value: Mark,
    is_here: bool,
    is_moving: bool,
    newer_ms: int,
    expires: bool,
) -> None:
    mark(ledger, value, WALL_MS + newer_ms)
    groups |= {GROUP} if is_here else set()
    ledger.migrating |= {GROUP} if is_moving else set()
    assert ledger.find_expired([GROUP, GroupId("unknown")], WALL_MS) == ([GROUP] if expires else [])


def test_the_retention_of_a_removed_group_begins_when_it_is_gone(ledger: MigrationLedger) -> None:
    mark(ledger, Mark.BEGUN)
    renewed = ledger.renew_mark(GROUP, WALL_MS + 5)
    assert renewed == ledger.make_mark(GROUP, Mark.BEGUN, WALL_MS + 5)
    mark(ledger, Mark.ADOPTED)
    assert ledger.renew_mark(GROUP, WALL_MS + 5) is None


def test_what_a_lost_ledger_had_is_counted_no_more(ledger: MigrationLedger) -> None:
    usage = ledger.marks.usage
    mark(ledger, Mark.ADOPTED)
    assert usage.offsets == 1
    ledger.forget()
    assert usage.offsets == 0
