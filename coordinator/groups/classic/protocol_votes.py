# SPDX-License-Identifier: Apache-2.0
"""Which protocol a group's members have in common, and which of these they want most."""

from collections.abc import Collection, Iterable

from coordinator.groups.classic.member import MemberMetadata, Protocols
from protocol.java_hash import hash_map_order


def winner(offers: Iterable[Protocols], candidates: Collection[str]) -> str:
    """The candidate with the most votes; each offer votes for the first candidate in it.

    Of several with as many votes it is the one that Kafka's hash map lists first. Raises KeyError for an offer without
    any of them.
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


def count_protocols(votes: dict[str, int], member: MemberMetadata, step: int) -> None:
    """Add to the votes what a member offers, `step` for each protocol; take away what has none left."""
    for name, _ in member.supported_protocols:
        count = votes.get(name, 0) + step
        if count:
            votes[name] = count
        else:
            del votes[name]
