# SPDX-License-Identifier: Apache-2.0
"""The handler of DeleteTopics v1-v6. v4: flexible. v5: error message. v6: by topic id (KIP-516).

Kafka shuffles the results, to hide which topics exist from clients that may not see them. Here every client may see
all topics, so the results are in the order of the request.
"""

import uuid
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list
from coordinator.api.topic_changes import change_and_answer
from coordinator.catalogue.steps import Steps, count_in_steps, iterate_in_steps
from coordinator.catalogue.topic import NO_ERROR, Refusal, Topic
from coordinator.catalogue.topics import MutableTopics
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DeleteTopicsRequest, DeleteTopicsResponse, build_schema

IDS_FROM: Final = 6
NO_ID: Final = uuid.UUID(int=0)


class WantedTopic(NamedTuple):
    """One topic to delete, as the request names it: by name, or (v6) by id."""

    name: str | None
    topic_id: uuid.UUID | None


class TopicDeletionResult(NamedTuple):
    """The outcome of deleting one topic, with the name and id that the response gives it."""

    name: str | None
    topic_id: uuid.UUID | None
    refusal: Refusal | None


def handle(node: Node, request: DeleteTopicsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Delete topics, each by itself, and the offsets that groups have committed in them."""
    version = ctx.api_version

    def edit(catalogue: MutableTopics) -> Steps[list[TopicDeletionResult]]:
        return _delete_all(catalogue, _wanted(request, version))

    def respond(deletions: list[TopicDeletionResult]) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            version=version, responses=cast_as_list(_result(each, version) for each in deletions)
        )

    return change_and_answer(node, ctx, edit, respond, lambda error: _refused_all(request, error, version))


def error_response(request: DeleteTopicsRequest, error: ErrorCode, version: int) -> DeleteTopicsResponse:
    """Return the response with one error for every topic."""
    response = _refused_all(request, error, version)
    response.responses = list(response.responses)
    return response


def _refused_all(request: DeleteTopicsRequest, error: ErrorCode, version: int) -> DeleteTopicsResponse:
    refusal = Refusal(error)
    return DeleteTopicsResponse(
        version=version,
        responses=cast_as_list(
            _result(TopicDeletionResult(*each, refusal), version) for each in _wanted(request, version)
        ),
    )


def _wanted(request: DeleteTopicsRequest, version: int) -> Iterator[WantedTopic]:
    if version >= IDS_FROM:
        return (WantedTopic(topic.name, topic.topic_id) for topic in request.topics)
    return (WantedTopic(name, None) for name in request.topic_names)


def _delete_all(catalogue: MutableTopics, wanted: Iterable[WantedTopic]) -> Steps[list[TopicDeletionResult]]:
    """Delete topics as ControllerApis.deleteTopics: one named twice, by name or id, stays and gets one result."""
    times = yield from count_in_steps(wanted)
    targets: dict[WantedTopic, Topic | Refusal] = {}
    for each in iterate_in_steps(times):
        if each is None:
            yield
        else:
            targets[each] = _find(catalogue, each)
    found = yield from count_in_steps(target.id for target in targets.values() if isinstance(target, Topic))
    deletions: list[TopicDeletionResult] = []
    for each in iterate_in_steps(targets):
        if each is None:
            yield
            continue
        target = targets[each]
        if isinstance(target, Refusal) and target.error is ErrorCode.INVALID_REQUEST:
            deletions.append(TopicDeletionResult(*each, target))
        elif times[each] > 1:
            what = "name" if each.topic_id is None else "id"
            deletions.append(TopicDeletionResult(*each, _refused(f"Duplicate topic {what}.")))
        elif isinstance(target, Refusal):
            deletions.append(TopicDeletionResult(*each, target))
        elif found[target.id] == 1:
            result = catalogue.remove_topic(target.name)
            refusal = result if isinstance(result, Refusal) else None
            deletions.append(TopicDeletionResult(target.name, target.uuid, refusal))
        elif each.name is not None:  # the request also has the topic's id, which gets no result of its own
            refusal = _refused("The provided topic name maps to an ID that was already supplied.")
            deletions.append(TopicDeletionResult(target.name, target.uuid, refusal))
    return deletions


def _find(catalogue: MutableTopics, wanted: WantedTopic) -> Topic | Refusal:
    name, topic_id = wanted
    if name is not None and topic_id is not None:
        return _refused("You may not specify both topic name and topic id.")
    if name is not None:
        found = catalogue.get(name)
        return found or Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    if topic_id is not None:
        found = catalogue.by_id(topic_id.bytes)
        return found or Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {topic_id}.")
    return _refused("Neither topic name nor id were specified.")


def _refused(reason: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, reason)


def _result(deletion: TopicDeletionResult, version: int) -> DeleteTopicsResponse.DeletableTopicResult:
    refusal = deletion.refusal or NO_ERROR
    return DeleteTopicsResponse.DeletableTopicResult(
        version=version,
        name=deletion.name,
        topic_id=deletion.topic_id or NO_ID,
        error_code=refusal.error,
        error_message=refusal.truncated_message,
    )


API: Final = Api(
    build_schema(DeleteTopicsRequest, DeleteTopicsResponse),
    versions=VersionRange(1, 6),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=True,
    error_parts=("responses",),
)
