# SPDX-License-Identifier: Apache-2.0
"""The answers of a node to the questions of other processes (`node_questions`)."""

import msgspec

from coordinator.app import App
from coordinator.overview.group_details import DetailsQuery, MembersQuery, OffsetsQuery, encode_group_answer
from coordinator.overview.group_list import GroupListQuery
from coordinator.overview.partition_list import PartitionListQuery
from coordinator.overview.status import StatusQuery
from coordinator.workers.questions.committed_ends import CommittedEndsQuery, answer_committed_ends

_QUESTIONS = msgspec.msgpack.Decoder(
    CommittedEndsQuery
    | GroupListQuery
    | StatusQuery
    | PartitionListQuery
    | DetailsQuery
    | MembersQuery
    | OffsetsQuery
)


async def answer_question(app: App, question: bytes) -> bytes | None:
    """Return the encoded answer; None if the node cannot answer now."""
    query = _QUESTIONS.decode(question)
    if isinstance(query, CommittedEndsQuery):
        return await answer_committed_ends(app.group_access, query)
    overview = app.local_overview()
    match query:
        case StatusQuery():
            return msgspec.msgpack.encode(overview.get_node_status())
        case PartitionListQuery():
            return msgspec.msgpack.encode(await overview.list_partitions(query))
        case GroupListQuery():
            return msgspec.msgpack.encode(await overview.list_groups(query))
        case _:
            return encode_group_answer(await overview.ask_about_group(query))
