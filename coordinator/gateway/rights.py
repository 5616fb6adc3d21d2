# SPDX-License-Identifier: Apache-2.0
"""The gate before our coordinators: nothing passes that the cluster would not let its client do.

What a client may do is asked of the broker on the client's own connection, so as the client, whoever that is; one that
has not logged in gets no further than at a broker. Answers are remembered for this connection, for a while.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

from coordinator.gateway import answers, rewriting
from coordinator.gateway.questions import DESCRIBE_CLUSTER, IS_THERE, Question, Right, is_there, questions
from coordinator.gateway.rules.rule import Judged, Rule
from coordinator.gateway.rules.table import RULES
from coordinator.gateway.ways import COORDINATOR, HERE, ClientSession, Rewrite, Route, Verdict
from protocol.errors import ErrorCode

REMEMBERED_MAX: Final = 10_000
"""How many rights a connection remembers, beside those of one request."""

QUESTIONS_AT_ONCE: Final = 20
"""So many questions about one request are under way; one that names many groups has several about each."""

Adopt = Callable[[list[str], Callable[[ErrorCode], None]], bool]
"""(groups, done) -> whether all of them are ours already. Where they are not, `done` is called later: with NONE once
they are, or with why they cannot be."""


def all_are_ours(_groups: list[str], _done: Callable[[ErrorCode], None]) -> bool:
    """Of a gateway that takes no groups over."""
    return True


Settle = Callable[[Collection[str | bytes], Callable[[], None]], bool]
"""(topics, done) -> whether our nodes know all of these. Where they do not, `done` is called later, once they were
looked for."""


def all_are_known(_topics: Collection[str | bytes], _done: Callable[[], None]) -> bool:
    """Of a gateway without a supervisor."""
    return True


@dataclass(slots=True, eq=False)
class Pending:
    """A request before it passes."""

    asked: Route
    rule: Rule
    request: Any
    rights: list[Right]
    may: dict[Right, bool] = field(default_factory=dict)
    open_questions: int = 0
    judged: Judged | None = None
    adopted: ErrorCode | None = None
    settled: bool | None = None
    """Whether the topics are known that it names; None where that was not asked."""


@dataclass(slots=True, eq=False)
class Known:
    """What is remembered of one connection."""

    allowed: dict[Right, tuple[bool, int]] = field(default_factory=dict)
    """With the millisecond until which it counts."""
    pending: Pending | None = None

    def missing(self, rights: Iterable[Right], may: dict[Right, bool], now_ms: int) -> list[Right]:
        """Put what is known of these rights into `may`; return the others."""
        missing = []
        for right in rights:
            allowed, until_ms = self.allowed.get(right, (False, 0))
            if until_ms > now_ms:
                may[right] = allowed
            else:
                missing.append(right)
        return missing

    def remember(self, allowed: dict[Right, bool], until_ms: int) -> None:
        """Keep what a broker said, in place of older things where it is much."""
        if len(self.allowed) > REMEMBERED_MAX:
            self.allowed.clear()
        self.allowed.update((right, (may, until_ms)) for right, may in allowed.items())


class Rights:
    """Judges what is bound for a coordinator; `gate` is what the routes ask."""

    def __init__(
        self,
        mono_ms: Callable[[], int],
        cache_ms: int,
        adopt: Adopt = all_are_ours,
        settle: Settle = all_are_known,
    ) -> None:
        """`adopt` makes groups ours, and `settle` topics known, before a request about them passes."""
        self._settle = settle
        self._mono_ms = mono_ms
        self._cache_ms = cache_ms
        self._adopt = adopt

    def gate(self, session: ClientSession, asked: Route, frame: bytes) -> Verdict | None:
        """A verdict on the request; None while it waits for a broker's answer, or for its group to become ours."""
        known = session.memory
        if known is None:
            known = session.memory = Known()
        assert isinstance(known, Known), "nobody else remembers anything"
        pending = known.pending
        if pending is None:
            pending = self._begin(session, known, asked, frame)
            if pending.open_questions:
                known.pending = pending
                return None
        verdict = self._judge(session, known, pending, frame)
        known.pending = None if verdict is not None else pending
        return verdict

    def _begin(self, session: ClientSession, known: Known, asked: Route, frame: bytes) -> Pending:
        rule, request = RULES[asked.api_key], answers.decoded(frame)
        # Of one that names nothing the broker is asked something all the same: it may be of nobody who has logged in.
        rights = rule.rights(request, asked.version) or [DESCRIBE_CLUSTER]
        pending = Pending(asked, rule, request, rights)
        missing = known.missing(pending.rights, pending.may, self._mono_ms())
        if missing:
            self._find_out(session, known, missing, pending)
        return pending

    def _find_out(self, session: ClientSession, known: Known, missing: list[Right], pending: Pending) -> None:
        left = iter(questions(missing))

        def ask(count: int) -> None:
            for question in islice(left, count):
                pending.open_questions += 1
                session.ask_broker(question.frame, partial(done, question))

        def done(question: Question, frame: bytes) -> None:
            allowed = question.read(frame)
            pending.may |= allowed
            # Of a topic that is not there nothing is remembered: it may be there for the next request.
            lasting = {
                right: may
                for right, may in allowed.items()
                if right.operation is not IS_THERE and allowed.get(is_there(right.name), True)
            }
            known.remember(lasting, self._mono_ms() + self._cache_ms)
            pending.open_questions -= 1
            ask(1)
            if not pending.open_questions:
                session.go_on()

        ask(QUESTIONS_AT_ONCE)

    def _judge(self, session: ClientSession, known: Known, pending: Pending, frame: bytes) -> Verdict | None:
        """The verdict, once all rights are known."""
        may = pending.may.__getitem__
        judged = pending.judged
        if judged is None:
            judged = pending.judged = pending.rule.judge(pending.request, pending.asked.version, may)
        if judged.error is not None:
            return Verdict(HERE, answers.refusal(frame, judged.error))
        if judged.answer is not None:
            return Verdict(HERE, answers.answer(frame, judged.answer))
        error = self._become_ours(session, pending, judged)
        if error is None:
            return None
        if error is not ErrorCode.NONE:
            return Verdict(HERE, answers.refusal(frame, error))
        if not self._topics_are_known(session, pending):
            return None
        return self._passing(session, known, pending, judged, frame)

    def _become_ours(self, session: ClientSession, pending: Pending, judged: Judged) -> ErrorCode | None:
        """NONE once the groups of the request are ours, or why they cannot be; None while that is not known."""
        if pending.adopted is not None:
            return pending.adopted
        left = pending.request if judged.request is None else judged.request
        groups = pending.rule.groups(left, pending.asked.version)

        def done(error: ErrorCode) -> None:
            pending.adopted = error
            session.go_on()

        if not groups or self._adopt(groups, done):
            return ErrorCode.NONE
        return pending.adopted

    def _topics_are_known(self, session: ClientSession, pending: Pending) -> bool:
        """Whether our nodes know the topics, of those that were asked about just now, that there are."""
        if pending.settled is not None:
            return pending.settled

        def done() -> None:
            pending.settled = True
            session.go_on()

        new = [right.name for right, there in pending.may.items() if there and right.operation is IS_THERE]
        pending.settled = not new or self._settle(new, done)
        return pending.settled

    def _passing(
        self, session: ClientSession, known: Known, pending: Pending, judged: Judged, frame: bytes
    ) -> Verdict:
        """What goes to the coordinator, and what is done with its answer."""
        changed = None if judged.request is None else answers.request(frame, judged.request)
        if judged.keep is not None:
            filtered = self._filtering(session, known, pending, judged)
            return Verdict(COORDINATOR, changed, filtered, is_alone=True)
        if judged.merge is None:
            return Verdict(COORDINATOR, changed)
        return Verdict(COORDINATOR, changed, rewriting.changed(*pending.asked[:2], judged.merge))

    def _filtering(self, session: ClientSession, known: Known, pending: Pending, judged: Judged) -> Rewrite:
        """Take out of an answer what the client may not see, which is asked once the answer is there."""
        names, keep, merge = judged.names, judged.keep, judged.merge
        assert names is not None, "what may not be seen is named"
        assert keep is not None, "and taken out"
        may: dict[Right, bool] = {}
        seeing = Pending(pending.asked, pending.rule, None, [], may)
        is_asked = False

        def change(response: Any) -> Any | None:
            nonlocal is_asked
            if not is_asked:
                is_asked = True
                missing = known.missing(names(response), may, self._mono_ms())
                if missing:
                    self._find_out(session, known, missing, seeing)
            if seeing.open_questions:
                return None
            kept = keep(response, may.__getitem__)
            return kept if merge is None else merge(kept)

        return rewriting.changed(*pending.asked[:2], change)
