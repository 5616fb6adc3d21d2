# SPDX-License-Identifier: Apache-2.0
"""The ends of partitions that groups of other nodes have committed."""

from collections.abc import Sequence

import msgspec

from coordinator.api.end_offsets_from_end_groups import find_group_committed_ends
from coordinator.logs.group_log import wait_for_durability_result
from coordinator.node import EndsByTopic, EndsTaker, Partitions
from coordinator.partitions.group_access import GroupAccess
from coordinator.tickets import ReplyDependencies
from coordinator.workers.questions.node_questions import NodeQuestions
from protocol.newtypes import GroupId


class CommittedEndsQuery(msgspec.Struct, frozen=True, tag=True):
    """Asks the node of a group for what the group has committed in these partitions, by topic."""

    group_id: GroupId
    partitions: dict[str, tuple[int, ...]]


_ENDS = msgspec.msgpack.Decoder(EndsByTopic)


class EndsOfOtherNodes:
    """Asks other nodes for the ends that their groups have committed (`CommittedOffsetSource`)."""

    def __init__(self, questions: NodeQuestions) -> None:
        """Ask other nodes through `questions`."""
        self._questions = questions

    def request_committed_offsets(self, group_id: GroupId, partitions: Partitions, done: EndsTaker) -> None:
        """Call `done` with the ends that the group has committed in these partitions; None if not known now."""
        question = _encode(group_id, partitions)
        self._questions.put(question, group_id, lambda answers, _missing: done(_decode(answers)))

    async def fetch(self, group_id: GroupId, partitions: Partitions) -> EndsByTopic | None:
        """As `request_committed_offsets`; return the ends. Raises TimeoutError if the supervisor does not answer."""
        answers, _ = await self._questions.ask(_encode(group_id, partitions), group_id)
        return _decode(answers)


def _encode(group_id: GroupId, partitions: Partitions) -> bytes:
    query = CommittedEndsQuery(group_id, {topic: tuple(each) for topic, each in partitions.items()})
    return msgspec.msgpack.encode(query)


def _decode(answers: Sequence[bytes]) -> EndsByTopic | None:
    return _ENDS.decode(answers[0]) if answers else None


async def answer_committed_ends(group_access: GroupAccess, query: CommittedEndsQuery) -> bytes | None:
    """Return the encoded ends once they are durable: no node may learn of an offset that a crash can take back.

    Return None if this node does not serve the group.
    """
    waiting = ReplyDependencies()
    ends = find_group_committed_ends(group_access, waiting, query.group_id, query.partitions)
    is_durable = await wait_for_durability_result(waiting)
    if ends is None or not is_durable or not group_access.serves(query.group_id):
        return None
    return msgspec.msgpack.encode(ends)
