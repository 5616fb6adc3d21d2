# SPDX-License-Identifier: Apache-2.0
"""The end offsets of partitions, which are the offsets that their end group has committed.

Topics hold no data, so a node cannot find their ends by itself. A topic may name an end group
(`groupkeeper.end.group`, or `end.group` for the whole node): the producer of the work commits its progress in that
group, with any client. If no group is named, or it has committed nothing in a partition, the end is unknown.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from coordinator.api.context import PARKED, ParkedSentinel, RequestContext
from coordinator.api.slices import respond_in_slices
from coordinator.catalogue.topic_configs import end_offsets_group_id
from coordinator.node import CommittedEndOffset, EndsByTopic, Node, Partitions
from coordinator.partitions.group_access import AbsentGroup, GroupAccess
from coordinator.tickets import ReplyDependencies
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

Known = Mapping[str, Mapping[int, CommittedEndOffset] | None]
"""By topic, the known ends by partition; None if they are unknown now, because their group is not served."""

NO_END: Final[Mapping[int, CommittedEndOffset]] = {}


def find_ends_and_respond(
    node: Node,
    ctx: RequestContext,
    wanted: Partitions,
    respond: Callable[[Known], object],
) -> ParkedSentinel:
    """Respond to a request with the ends of these partitions: at once, or once other nodes have sent theirs.

    The response of `respond` may have generators in place of its lists. The reply waits until the commits that it
    shows are durable.
    """
    known: dict[str, Mapping[int, CommittedEndOffset] | None] = dict.fromkeys(wanted, NO_END)
    elsewhere: dict[GroupId, Partitions] = {}
    for group_id, partitions in _by_group(node, wanted).items():
        if node.ends is not None and not node.group_access.leads(group_id):
            elsewhere[group_id] = partitions
        else:
            ends = find_group_committed_ends(node.group_access, ctx, group_id, partitions)
            known.update(ends or dict.fromkeys(partitions))
    if node.ends is None or not elsewhere:
        return respond_in_slices(node, ctx, respond(known))
    waiting = set(elsewhere)

    def known_now(group_id: GroupId, ends: EndsByTopic | None) -> None:
        known.update(ends or dict.fromkeys(elsewhere[group_id]))
        waiting.discard(group_id)
        if not waiting:
            respond_in_slices(node, ctx, respond(known))

    for group_id, partitions in elsewhere.items():
        node.ends.request_committed_offsets(group_id, partitions, partial(known_now, group_id))
    return PARKED


def _by_group(node: Node, wanted: Partitions) -> Mapping[GroupId, Partitions]:
    """Return the partitions by their end group; leave out topics without one."""
    by_group: dict[GroupId, dict[str, Collection[int]]] = {}
    for name, indexes in wanted.items():
        topic = node.catalogue.get(name)
        group_id = GroupId("") if topic is None else end_offsets_group_id(topic, node.settings)
        if group_id:
            by_group.setdefault(group_id, {})[name] = indexes
    return by_group


def find_group_committed_ends(
    group_access: GroupAccess, waiting: ReplyDependencies, group_id: GroupId, partitions: Partitions
) -> EndsByTopic | None:
    """Return what a group of this node has committed in these partitions; `waiting` waits until that is durable.

    Return None if this node does not serve the group now.
    """
    kept = group_access.look_up_group(waiting, group_id)
    if isinstance(kept, ErrorCode):
        return None
    if isinstance(kept, AbsentGroup):
        return dict.fromkeys(partitions, NO_END)
    ends = {}
    for name, indexes in partitions.items():
        committed = kept.offsets.get_topic_offsets(name)
        found = {index: committed[index] for index in indexes if index in committed}
        ends[name] = {
            index: CommittedEndOffset(each.offset, each.commit_timestamp)
            for index, each in found.items()
            if each.offset >= 0
        }
    return ends
