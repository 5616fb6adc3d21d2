# SPDX-License-Identifier: Apache-2.0
"""The handler of CreatePartitions v0-v3. v2: flexible. v3: quota errors (KIP-599), which never occur here."""

from collections.abc import Sequence
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list
from coordinator.api.topic_changes import change_and_answer, find_repeat_refusals, find_replica_refusal
from coordinator.catalogue.steps import Steps, iterate_in_steps
from coordinator.catalogue.topic import NO_ERROR, Refusal
from coordinator.catalogue.topics import MutableTopics
from coordinator.node import Node
from coordinator.topology.view import ClusterTopology
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import CreatePartitionsRequest, CreatePartitionsResponse, build_schema

CreatePartitionsTopic = CreatePartitionsRequest.CreatePartitionsTopic

Grown = dict[str, Refusal | None]


def handle(node: Node, request: CreatePartitionsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Add partitions to topics; a refused topic does not stop the others."""
    version = ctx.api_version

    def edit(catalogue: MutableTopics) -> Steps[Grown]:
        return _grow_all(catalogue, request.topics, node.cluster)

    def respond(outcome: Grown) -> CreatePartitionsResponse:
        results = (_result(name, refusal, version) for name, refusal in outcome.items())
        return CreatePartitionsResponse(version=version, results=cast_as_list(results))

    def refuse(error: ErrorCode) -> CreatePartitionsResponse:
        return _refused(request, error, version)

    return change_and_answer(node, ctx, edit, respond, refuse, validate_only=request.validate_only)


def error_response(
    request: CreatePartitionsRequest, error: ErrorCode, version: int
) -> CreatePartitionsResponse:
    """Return the response with one error for every topic."""
    response = _refused(request, error, version)
    response.results = list(response.results)
    return response


def _refused(request: CreatePartitionsRequest, error: ErrorCode, version: int) -> CreatePartitionsResponse:
    refusal = Refusal(error)
    return CreatePartitionsResponse(
        version=version,
        results=cast_as_list(_result(topic.name, refusal, version) for topic in request.topics),
    )


def _grow_all(
    catalogue: MutableTopics, wanted: Sequence[CreatePartitionsTopic], cluster: ClusterTopology
) -> Steps[Grown]:
    """Return refusals by name: repeated names first (ControllerApis.createPartitions), then as in the request."""
    outcome: Grown = {**(yield from find_repeat_refusals(topic.name for topic in wanted))}
    budget = most = catalogue.limits.partitions_per_request
    for topic in iterate_in_steps(wanted):
        if topic is None:
            yield
            continue
        if topic.name in outcome:
            continue
        there = catalogue.get(topic.name)
        more = topic.count - there.partitions if there else 0
        refusal = _refuse_assignments(topic, more, cluster) if more > 0 else None
        if refusal is None and more > budget:
            refusal = Refusal(
                ErrorCode.POLICY_VIOLATION,
                f"One request may make {most} partitions (max.partitions.per.request), and this one wants more.",
            )
        if refusal is None:
            result = catalogue.create_partitions(topic.name, topic.count)
            refusal = result if isinstance(result, Refusal) else None
            budget -= 0 if refusal else more
        outcome[topic.name] = refusal
    return outcome


def _refuse_assignments(topic: CreatePartitionsTopic, more: int, cluster: ClusterTopology) -> Refusal | None:
    if topic.assignments is None:
        return None
    if len(topic.assignments) != more:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but {len(topic.assignments)} assignment(s) "
            "were specified.",
        )
    for assignment in topic.assignments:
        if refusal := find_replica_refusal(assignment.broker_ids, cluster):
            return refusal
    return None


def _result(
    name: str, refusal: Refusal | None, version: int
) -> CreatePartitionsResponse.CreatePartitionsTopicResult:
    refusal = refusal or NO_ERROR
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        version=version, name=name, error_code=refusal.error, error_message=refusal.truncated_message
    )


API: Final = Api(
    build_schema(CreatePartitionsRequest, CreatePartitionsResponse),
    versions=VersionRange(0, 3),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=True,
    error_parts=("results",),
)
