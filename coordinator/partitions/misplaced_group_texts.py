# SPDX-License-Identifier: Apache-2.0
"""Messages about groups that are in a partition where no client looks for them."""

from collections.abc import Iterable, Iterator
from typing import Final

from protocol.placement import (
    GroupPlacementTally,
    find_swapped_directories,
    infer_earlier_partition_count,
)

DIRECTORY_IN_WRONG_PLACE: Final = "the directory of a partition seems to be that of another one"
PUT_IN_PLACE: Final = (
    "stop the node, put each partition's directory back under its own number, start the node again"
)


def describe_misplaced(placements: Iterable[GroupPlacementTally]) -> Iterator[str]:
    """Yield a line for each partition with misplaced groups, and one if the topic has got more partitions since."""
    misplaced = [each for each in placements if each.elsewhere]
    wrong = find_swapped_directories(misplaced)
    for each in misplaced:
        home = wrong.get(each.partition)
        if home is None:
            yield f"partition {each.partition} has {_groups(each)} of other partitions, where clients look for them"
        else:
            yield (
                f"partition {each.partition} has only {_groups(each)}, and all belong to partition {home}: "
                f"its directory seems to be that of partition {home}; {PUT_IN_PLACE}"
            )
    earlier = infer_earlier_partition_count(misplaced)
    if earlier is not None and len(wrong) < len(misplaced):
        yield (
            f"these groups were placed by {earlier} partitions: the topic has got more since, and Kafka does not find "
            "them either"
        )


def _groups(placement: GroupPlacementTally) -> str:
    names = ", ".join(map(repr, placement.names))
    more = placement.misplaced_group_count - len(placement.names)
    noun = "group" if placement.misplaced_group_count == 1 else "groups"
    return f"{placement.misplaced_group_count} {noun} ({names}{f' and {more} more' if more else ''})"
