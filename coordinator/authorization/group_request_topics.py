# SPDX-License-Identifier: Apache-2.0
"""Permissions for the topics that a request about a group names, and the response for refused topics."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.authorization.permissions import Operation, Permission, topic_permission
from coordinator.authorization.rule import NONE, Decide
from protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class TopicsRulePart:
    """The part of a rule about topics: each topic needs a permission, and only permitted topics stay in the request."""

    operation: Operation
    refused: Callable[[Any, ErrorCode, int], Any]
    """(topic of a request, error, version) -> the topic of the response in which every partition has this error."""
    refuses_all_unknown: bool = False
    """True if a topic without a decision refuses the whole request for the group, as at a broker."""
    ids_from: int | None = None
    """The version from which on topics are named by their ids."""

    def get_needed_permission(self, topic: Any, version: int) -> Permission:
        """Return the permission for a topic of a request or a response."""
        by_id = self.ids_from is not None and version >= self.ids_from
        return topic_permission(self.operation, topic.topic_id if by_id else topic.name)

    def find_permissions_to_look_up(self, topics: Iterable[Any] | None, version: int) -> list[Permission]:
        """Return the permissions for all of these topics; None names no topic."""
        return [self.get_needed_permission(topic, version) for topic in topics or ()]

    def find_failed_decision_error(
        self, topics: Iterable[Any] | None, version: int, decide: Decide
    ) -> ErrorCode:
        """Return the first error that means neither that the client lacks the permission nor that the topic is unknown.

        Returns NONE if there is no such error, and always if `refuses_all_unknown` is not set.
        """
        if self.refuses_all_unknown:
            for topic in topics or ():
                error = decide(self.get_needed_permission(topic, version))
                if error not in (NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID):
                    return error
        return NONE

    def select_permitted_topics(self, topics: Sequence[Any], version: int, decide: Decide) -> list[Any]:
        """Return the topics that are not refused."""
        return [topic for topic in topics if decide(self.get_needed_permission(topic, version)) is NONE]

    def make_refused_topics(self, topics: Sequence[Any] | None, version: int, decide: Decide) -> list[Any]:
        """Return the topics of the response that stand for the refused ones."""
        found = ((topic, decide(self.get_needed_permission(topic, version))) for topic in topics or ())
        return [self.refused(topic, error, version) for topic, error in found if error is not NONE]
