# SPDX-License-Identifier: Apache-2.0
"""Where a gateway answers otherwise than Kafka, on purpose or for want of a better way: four reasons.

docs/gateway.md, "Logins and rights", states each of them.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.gateway.matrix.recording import Part


class Case(NamedTuple):
    """A request that a user gets different answers to."""

    kind: str
    request: str
    user: str
    kafka: str
    ours: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.request} by {self.user}\n  kafka {self.kafka}\n  ours  {self.ours}"


class Difference(NamedTuple):
    """Kinds of request whose answers may differ, for one reason."""

    reason: str
    kinds: tuple[str, ...]
    pattern: Callable[[str], str]
    """(Kafka's answer) -> a regular expression of the answers that are allowed in its place."""
    users: tuple[str, ...] = ()
    """The only users whose answers differ; empty if that follows from Kafka's answer."""

    def explains(self, case: Case) -> bool:
        """Whether the case differs for this reason, and in no other way."""
        if case.kind not in self.kinds or (self.users and case.user not in self.users):
            return False
        return re.fullmatch(self.pattern(case.kafka), case.ours) is not None


def differing(kind: str, theirs: Part, ours: Part) -> list[Case]:
    """All cases of a kind in which the answers differ."""
    return [
        Case(kind, request, user, kafka, mine)
        for user, answers in theirs.cases.items()
        for request, kafka, mine in zip(theirs.requests, answers, ours.cases[user], strict=True)
        if kafka != mine
    ]


def _errors(theirs: str, ours: str) -> Callable[[str], str]:
    """Any number of errors `theirs` (a regular expression) may be `ours`."""
    error = re.compile(f"error_code=({theirs})\\b")
    return lambda answer: error.sub(rf"error_code=(\1|{ours})", re.escape(answer))


def _without_settings(answer: str) -> str:
    """Operations without DESCRIBE_CONFIGS (10) and ALTER_CONFIGS (11)."""
    return re.escape(answer.replace(",10,11}", "}"))


def _each_once(answer: str) -> str:
    """No group twice; the groups are sorted."""
    return re.escape(re.sub(r"({[^{}]*}), (?=\1)", "", answer))


DIFFERENCES: Final = (
    Difference(
        "a gateway does not report the operations on the settings of groups",
        ("describe with authorized operations",),
        _without_settings,
    ),
    Difference(
        "a gateway asks by Metadata whether a topic may be read, which needs DESCRIBE",
        (
            "commit of one topic",
            "commit of several topics",
            "commit by topic ids",
            "delete offsets of one topic",
            "delete offsets of several topics",
        ),
        _errors("NONE|UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED"),
        ("all-but-topic-describe", "all-but-prefixed-describe", "read-prefixed-deny-describe-literal"),
    ),
    Difference(
        "Kafka refuses a group as often as it is named once its authorizer has thrown",
        ("delete a group twice",),
        _each_once,
        ("broken-group",),
    ),
    Difference(
        "Kafka refuses all groups of a request once its authorizer has thrown",
        ("fetch of several groups", "fetch of several groups and all topics", "fetch by topic ids"),
        _errors("UNKNOWN_SERVER_ERROR", "GROUP_AUTHORIZATION_FAILED"),
        ("broken-topic",),
    ),
)
