# SPDX-License-Identifier: Apache-2.0
"""The five states of a classic group and the transitions between them."""

import enum
from collections.abc import Mapping
from typing import Final


class GroupState(enum.Enum):
    """The state of a classic group (Kafka: ClassicGroupState). The value is the spelling that clients see.

    EMPTY: no members; offsets may remain. Joins start a rebalance, commits without a generation are accepted.
    PREPARING_REBALANCE: members are asked to rejoin; joins wait, syncs and heartbeats get REBALANCE_IN_PROGRESS.
    COMPLETING_REBALANCE: a generation was formed; syncs wait for the leader's assignment.
    STABLE: the assignment is known; syncs get it at once.
    DEAD: the group, or its partition, has left memory or is about to; requests get an error on which clients look for
    the coordinator again.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    __hash__ = object.__hash__  # Enum's own is written in Python, and every step of a rebalance calls it


VALID_PREVIOUS_STATES: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
"""The states from which a group may enter each state."""


class IllegalTransition(AssertionError):
    """A transition that `VALID_PREVIOUS_STATES` forbids: a bug of ours, never caused by a client."""
