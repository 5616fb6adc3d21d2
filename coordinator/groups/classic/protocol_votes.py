# SPDX-License-Identifier: Apache-2.0
"""The vote of a group's members for one of the protocols that they all support."""

from collections.abc import Collection, Iterable

from coordinator.groups.classic.member import MemberMetadata, Protocols
from protocol.java_hash import hash_map_order


def find_winning_protocol(offers: Iterable[Protocols], candidates: Collection[str]) -> str:
    """Return the candidate with the most votes; each offer votes for its first candidate.

    In a tie, it is the one that Kafka's hash map lists first. Raises KeyError for an offer without a candidate.
    """
    votes: dict[str, int] = {}
    for offer in offers:
        for name, _ in offer:
            if name in candidates:
                votes[name] = votes.get(name, 0) + 1
                break
        else:
            raise KeyError(f"none of {sorted(candidates)} is offered by all members")
    return max(hash_map_order(votes), key=lambda name: votes[name])


def change_protocol_counts(votes: dict[str, int], member: MemberMetadata, step: int) -> None:
    """Add `step` to the votes of each protocol that a member offers, and remove protocols without votes."""
    for name, _ in member.supported_protocols:
        count = votes.get(name, 0) + step
        if count:
            votes[name] = count
        else:
            del votes[name]
