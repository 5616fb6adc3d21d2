# SPDX-License-Identifier: Apache-2.0
"""The common parts of the handlers that change topics."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from coordinator.api.context import PARKED, ParkedSentinel, RequestContext
from coordinator.api.slices import respond_in_slices
from coordinator.catalogue.catalogue_writer import ChangesClosed
from coordinator.catalogue.steps import Steps, count_in_steps
from coordinator.catalogue.topic import Refusal
from coordinator.catalogue.topics import Draft
from coordinator.node import Node
from coordinator.topology.view import ClusterTopology
from protocol.errors import ErrorCode
from storage.errors import StorageError

Result = TypeVar("Result")
Response = TypeVar("Response")


def change_and_answer(
    node: Node,
    ctx: RequestContext,
    edit: Callable[[Draft], Steps[Result]],
    respond: Callable[[Result], Response],
    refuse: Callable[[ErrorCode], Response],
    *,
    validate_only: bool = False,
) -> ParkedSentinel:
    """Change the catalogue, and respond with the outcome once it is on disk; with `validate_only` change nothing.

    The responses of `respond` and `refuse` may have generators in place of their lists.

    A change that could not be stored is answered with `refuse(KAFKA_STORAGE_ERROR)`, one that arrives while the
    node stops with `refuse(NOT_CONTROLLER)`: clients retry after both.
    """

    def done(outcome: Result | BaseException) -> None:
        if isinstance(outcome, StorageError):
            response = refuse(ErrorCode.KAFKA_STORAGE_ERROR)
        elif isinstance(outcome, ChangesClosed):
            response = refuse(ErrorCode.NOT_CONTROLLER)
        elif isinstance(outcome, BaseException):
            response = refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            response = respond(outcome)
        respond_in_slices(node, ctx, response)

    node.catalogue_store.submit_stepwise_edit(edit, done, only_try=validate_only)
    return PARKED


def find_repeat_refusals(names: Iterable[str]) -> Steps[dict[str, Refusal]]:
    """Return a refusal for each name that a request holds more than once, in the order of the request."""
    refusal = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    times = yield from count_in_steps(names)
    return {name: refusal for name, count in times.items() if count > 1}


def find_replica_refusal(broker_ids: list[int], cluster: ClusterTopology) -> Refusal | None:
    """Return why the replicas of a partition in a request are refused; None if they are exactly one of our nodes."""
    known = {broker.node_id for broker in cluster.brokers}
    if len(broker_ids) == 1 and broker_ids[0] in known:
        return None
    strangers = [broker_id for broker_id in broker_ids if broker_id not in known]
    if not broker_ids:
        reason = "includes an empty replica list."
    elif strangers:
        reason = f"includes broker {strangers[0]}, but no such broker is registered."
    elif len(set(broker_ids)) == 1:
        reason = f"includes the broker {broker_ids[0]} more than once."
    else:
        reason = "includes several brokers, but partitions have one replica here."
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {reason}")
