# SPDX-License-Identifier: Apache-2.0
"""A client of one cluster: finds the node for each request, and retries while the cluster is not ready.

Metadata names nodes, controller and leaders, FindCoordinator the coordinators of groups.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.error_texts import describe_timeout, explain_error
from coordinator.cli.cluster.security import PLAINTEXT, Security
from coordinator.cli.errors import CommandError
from coordinator.cluster_requests.groups import find_coordinators
from coordinator.cluster_requests.retrying import RETRIABLE, RefusedByCluster, RetryLater, iterate_pauses_s
from coordinator.cluster_requests.topics import metadata
from coordinator.config.values import Address
from protocol.errors import ErrorCode, error_name

if TYPE_CHECKING:
    from coordinator.cluster_requests.groups import Coordinators
    from protocol.kafka_python_messages import MetadataResponse

T = TypeVar("T")

GROUPS_AT_ONCE: Final = 500
"""The number of groups that one request names, so that no response is very long."""


class RefusedAnswer(NamedTuple):
    """The Kafka error that a server returns about one thing, perhaps with its reason."""

    code: int
    message: str | None = None

    def __str__(self) -> str:
        return f"{error_name(self.code)} ({self.message})" if self.message else explain_error(self.code)


class Client:
    """Sends requests to one cluster; raises CommandError if they take more than `timeout_s` in all."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        timeout_s: float,
        security: Security = PLAINTEXT,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin with the nodes in `bootstrap`: the first that can be reached names the others."""
        self._clock = clock
        self._pause = pause
        self._deadline = clock() + timeout_s
        self._timeout_s = timeout_s
        self._bootstrap = bootstrap
        self._security = security
        self._first: NodeConnection | None = None
        self._connections: dict[Address, NodeConnection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def call_with_retries(self, attempt: Callable[[], T]) -> T:
        """Repeat `attempt` while it raises RetryLater. Raises CommandError when this client's time is up."""
        pauses_s = iterate_pauses_s(self._clock, self._deadline)
        while True:
            try:
                with refusals_as_command_errors():
                    return attempt()
            except RetryLater as answer:
                pause_s = next(pauses_s, None)
                if pause_s is None:
                    raise CommandError(describe_timeout(answer, self._timeout_s)) from None
            self._pause(pause_s)

    def connect(self, address: Address) -> NodeConnection:
        """Return the connection to a node. Raises CommandError if there can be none."""
        if address not in self._connections:
            self._connections[address] = NodeConnection(address, self._left_s, self._security)
        return self._connections[address]

    def _left_s(self) -> float:
        return max(0.001, self._deadline - self._clock())

    def bootstrap_connection(self) -> NodeConnection:
        """Return the connection to the first node of the bootstrap list that can be reached."""
        if self._first is None:
            self._first = self._reach()
        return self._first

    def _reach(self) -> NodeConnection:
        failed = []
        for address in self._bootstrap:
            try:
                return self.connect(address)
            except CommandError as error:
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        raise CommandError("; ".join(map(str, failed)), failed[0].exit_code)

    def fetch_metadata(self, topics: Sequence[str] | None) -> "MetadataResponse":
        """Return the metadata of these topics, or of all; the request creates no topic."""
        return self.bootstrap_connection().ask(metadata(topics))

    def fetch_node_addresses(self) -> list[Address]:
        """Return the addresses of all nodes of the cluster."""
        return list(self.addresses_by_node_id(self.fetch_metadata([])).values())

    def addresses_by_node_id(self, metadata: "MetadataResponse") -> dict[int, Address]:
        """Return the address of each node in a MetadataResponse, by node id."""
        brokers = {broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers}
        if len(brokers) <= 1:  # the only node, whatever address it advertises
            return dict.fromkeys(brokers or (-1,), self.bootstrap_connection().address)
        return brokers

    def connect_to_controller(self) -> NodeConnection:
        """Return the connection to the node that changes topics."""
        metadata = self.fetch_metadata([])
        address = self.addresses_by_node_id(metadata).get(metadata.controller_id)
        return self.connect(address) if address else self.bootstrap_connection()

    def find_coordinators(self, groups: Sequence[str]) -> "Coordinators":
        """Return FindCoordinator's result for each of the groups, in their order."""
        return self.bootstrap_connection().ask(find_coordinators(groups))

    def ask_group_coordinators(
        self,
        doing: str,
        groups: Iterable[str],
        ask: Callable[[NodeConnection, Sequence[str]], Mapping[str, T | RefusedAnswer]],
    ) -> dict[str, T | RefusedAnswer]:
        """Ask the coordinators of the groups, each about its own groups, and again if one is not ready.

        `ask` sends one request about some groups of one coordinator. The results are in the order of `groups`. Raises
        CommandError when the time is up.
        """
        answers: dict[str, T | RefusedAnswer] = {}
        wanted = list(dict.fromkeys(groups))

        def attempt() -> None:
            waiting = [group for group in wanted if group not in answers]
            for start in range(0, len(waiting), GROUPS_AT_ONCE):
                self._ask_coordinators(waiting[start : start + GROUPS_AT_ONCE], ask, answers)
            for group in wanted:
                answer = answers[group]
                if isinstance(answer, RefusedAnswer) and answer.code in RETRIABLE:
                    for each in [each for each in wanted if _is_not_ready(answers[each])]:
                        del answers[each]
                    raise RetryLater(f"{doing} group {group}", answer.code)

        self.call_with_retries(attempt)
        return {group: answers[group] for group in wanted}

    def _ask_coordinators(
        self,
        groups: Sequence[str],
        ask: Callable[[NodeConnection, Sequence[str]], Mapping[str, T | RefusedAnswer]],
        answers: dict[str, T | RefusedAnswer],
    ) -> None:
        by_node: dict[NodeConnection, list[str]] = {}
        for group, found in zip(groups, self.find_coordinators(groups), strict=True):
            if found.error_code == ErrorCode.NONE:
                connection = self.connect(Address(found.host, found.port))
                connection.node_id = found.node_id
                by_node.setdefault(connection, []).append(group)
            else:
                answers[group] = RefusedAnswer(found.error_code, found.error_message)
        for connection, named in by_node.items():
            answers.update(ask(connection, named))

    def ask_group_coordinator(
        self, doing: str, group: str, ask: Callable[[NodeConnection], T | RefusedAnswer]
    ) -> T:
        """Ask the coordinator of one group. Raises CommandError if the coordinator refuses."""
        answer = self.ask_group_coordinators(doing, [group], lambda connection, _: {group: ask(connection)})[
            group
        ]
        return get_answer_or_raise(answer, f"{doing} group {group}")


@contextmanager
def refusals_as_command_errors() -> Iterator[None]:
    """Raise a CommandError for a RefusedByCluster."""
    try:
        yield
    except RefusedByCluster as refused:
        raise CommandError(f"{refused.doing}: {RefusedAnswer(refused.code, refused.message)}") from None


def _is_not_ready(answer: object) -> bool:
    return isinstance(answer, RefusedAnswer) and answer.code in RETRIABLE


def get_answer_or_raise(answer: T | RefusedAnswer, doing: str) -> T:
    """Return the result. Raises CommandError if it is a refusal."""
    if isinstance(answer, RefusedAnswer):
        raise CommandError(f"{doing}: {answer}")
    return answer
