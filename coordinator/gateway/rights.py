# SPDX-License-Identifier: Apache-2.0
"""The gate before our coordinators: nothing passes that the cluster would not let its client do.

What a client may do is asked of the broker on the client's own connection, so as the client, whoever that is; one that
has not logged in gets no further than at a broker. Answers are remembered for this connection, for a while.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from coordinator.gateway import answers, rewriting
from coordinator.gateway.beside import LONG_BYTES, Beside, Computing
from coordinator.gateway.questions import DESCRIBE_CLUSTER, Answer, Question, Right, questions
from coordinator.gateway.rules.rule import AnyJudged, AnyRule
from coordinator.gateway.rules.table import RULES
from coordinator.gateway.ways import COORDINATOR, HERE, ClientSession, Rewrite, Route, Verdict
from protocol.errors import ErrorCode

T = TypeVar("T")

REMEMBERED_MAX: Final = 10_000
"""How many rights a connection remembers, and twice that now and then."""
REMEMBERED_ALWAYS: Final = 50
"""And so many at least: members have a few."""
REMEMBERED_IN_ALL_MAX: Final = 100_000
"""How many all connections of a process remember: some 50 MB."""
REMEMBERED_NAME_MAX: Final = 256
"""Of a group with a longer name nothing is remembered; topics have none."""

QUESTIONS_AT_ONCE: Final = 20
"""So many questions about one request are under way; one that names many groups has several about each."""

Adopt = Callable[[list[str], Callable[[ErrorCode], None]], bool]
"""(groups, done) -> whether all of them are ours already. Where they are not, `done` is called later: with NONE once
they are, or with why they cannot be."""


def all_are_ours(_groups: list[str], _done: Callable[[ErrorCode], None]) -> bool:
    """Of a gateway that takes no groups over."""
    return True


class Begun(NamedTuple):
    """What is found out of a request at first."""

    request: Any
    may: dict[Right, bool]
    """What is known of its rights."""
    questions: Iterator[Question]
    """About the others."""


class Settled(NamedTuple):
    """What becomes of a request, and the groups that its coordinator is asked about."""

    judged: AnyJudged
    groups: list[str]


@dataclass(slots=True, eq=False)
class Pending:
    """A request before it passes."""

    asked: Route
    rule: AnyRule
    begun: Begun | None = None
    open_questions: int = 0
    failed: BaseException | None = None
    settled: Settled | None = None
    adopted: ErrorCode | None = None

    @property
    def may(self) -> dict[Right, bool]:
        """What the client may do, as far as it is known."""
        assert self.begun is not None, "it was looked at"
        return self.begun.may


@dataclass(slots=True, eq=False)
class InAll:
    """How many rights all connections of a process remember."""

    count: int = 0


@dataclass(slots=True, eq=False)
class Known:
    """What is remembered of one connection."""

    allowed: dict[Right, tuple[bool, int]] = field(default_factory=dict)
    """With the millisecond until which it counts."""
    pending: Pending | None = None
    computing: Computing[object] | None = None
    in_all: InAll = field(default_factory=InAll)

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
        lasting = {
            right: (may, until_ms) for right, may in allowed.items() if len(right.name) <= REMEMBERED_NAME_MAX
        }
        if not self._has_room(len(lasting)):
            self._forget()
        if self._has_room(len(lasting)) and len(lasting) <= REMEMBERED_MAX:
            before = len(self.allowed)
            self.allowed.update(lasting)
            self.in_all.count += len(self.allowed) - before

    def _has_room(self, count: int) -> bool:
        if len(self.allowed) + count <= REMEMBERED_ALWAYS:
            return True
        return len(self.allowed) <= REMEMBERED_MAX and self.in_all.count + count <= REMEMBERED_IN_ALL_MAX

    def _forget(self) -> None:
        self.in_all.count -= len(self.allowed)
        self.allowed = {}

    def end(self) -> None:
        """The connection is over."""
        self._forget()


def known_of(session: ClientSession, in_all: InAll | None = None) -> Known:
    """What is remembered of this connection; `in_all` counts what is of several."""
    known = session.memory
    if known is None:
        known = session.memory = Known()
    assert isinstance(known, Known), "nobody else remembers anything"
    if in_all is not None:
        known.in_all = in_all
    return known


class Rights:
    """Judges what is bound for a coordinator; `gate` is what the routes ask."""

    def __init__(
        self,
        mono_ms: Callable[[], int],
        cache_ms: int,
        beside: Beside,
        adopt: Adopt = all_are_ours,
    ) -> None:
        """`adopt` makes groups ours before a request about them passes."""
        self._mono_ms = mono_ms
        self._cache_ms = cache_ms
        self._beside = beside
        self._adopt = adopt
        self.remembered = InAll()

    def gate(self, session: ClientSession, asked: Route, frame: bytes) -> Verdict | None:
        """A verdict on the request.

        None while it waits: for a broker's answer, for its group to become ours, or for long work on it.
        """
        known = known_of(session, self.remembered)
        pending = known.pending
        if pending is None:
            pending = known.pending = Pending(asked, RULES[asked.api_key])
        if pending.failed is not None:
            raise pending.failed
        if pending.begun is None and not self._begin(session, known, pending, frame):
            return None
        verdict = None if pending.open_questions else self._judge(session, known, pending, frame)
        if verdict is not None:
            known.pending = None
        return verdict

    def _begin(self, session: ClientSession, known: Known, pending: Pending, frame: bytes) -> bool:
        """Whether the request was looked at; what is not known yet is being asked then."""
        looked = partial(_look_at, pending, known, self._mono_ms(), frame)
        begun = pending.begun = self._beside.computed(session, known, len(frame), looked)
        if begun is None:
            return False
        self._find_out(session, known, begun.questions, pending)
        return True

    def _find_out(
        self, session: ClientSession, known: Known, left: Iterator[Question], pending: Pending
    ) -> None:
        def ask(count: int) -> None:
            for question in islice(left, count):
                pending.open_questions += 1
                session.ask_broker(question.frame, partial(heard, question))

        def heard(question: Question, frame: bytes) -> None:
            if len(frame) > LONG_BYTES:
                self._beside.do(partial(question.read, frame), done)
            else:
                done(question.read(frame))

        def done(answer: Answer | BaseException) -> None:
            if isinstance(answer, BaseException):
                pending.failed = answer
            else:
                pending.may.update(answer.allowed)
                known.remember(answer.lasting, self._mono_ms() + self._cache_ms)
            pending.open_questions -= 1
            ask(1)
            if not pending.open_questions or pending.failed is not None:
                session.go_on()

        ask(QUESTIONS_AT_ONCE)

    def _judge(self, session: ClientSession, known: Known, pending: Pending, frame: bytes) -> Verdict | None:
        """The verdict, once all rights are known."""

        def computed(work: partial[T]) -> T | None:
            return self._beside.computed(session, known, len(frame), work)

        if pending.settled is None:
            pending.settled = computed(partial(_settled, pending))
            if pending.settled is None:
                return None
        judged, groups = pending.settled.judged, pending.settled.groups
        if judged.error is not None:
            return _here(computed(partial(answers.refusal, frame, judged.error)))
        if judged.answer is not None:
            return _here(computed(partial(answers.answer, frame, judged.answer)))
        error = self._become_ours(session, pending, groups)
        if error is None:
            return None
        if error is not ErrorCode.NONE:
            return _here(computed(partial(answers.refusal, frame, error)))
        changed = (
            None if judged.request is None else computed(partial(answers.request, frame, judged.request))
        )
        if judged.request is not None and changed is None:
            return None
        return self._passing(session, known, pending, judged, changed)

    def _become_ours(self, session: ClientSession, pending: Pending, groups: list[str]) -> ErrorCode | None:
        """NONE once the groups of the request are ours, or why they cannot be; None while that is not known."""
        if pending.adopted is not None:
            return pending.adopted

        def done(error: ErrorCode) -> None:
            pending.adopted = error
            session.go_on()

        if not groups or self._adopt(groups, done):
            # Asked once: a group that goes meanwhile is refused by its coordinator.
            pending.adopted = ErrorCode.NONE
        return pending.adopted

    def _passing(
        self, session: ClientSession, known: Known, pending: Pending, judged: AnyJudged, changed: bytes | None
    ) -> Verdict:
        """What goes to the coordinator, `changed` in place of the request, and what is done with its answer."""
        if judged.keep is not None:
            filtered = self._filtering(session, known, pending, judged)
            return Verdict(COORDINATOR, changed, filtered, is_alone=True)
        if judged.merge is None:
            return Verdict(COORDINATOR, changed)
        merged = rewriting.changed(*pending.asked[:2], judged.merge)
        return Verdict(COORDINATOR, changed, self._beside.rewriting(session, merged))

    def _filtering(
        self, session: ClientSession, known: Known, pending: Pending, judged: AnyJudged
    ) -> Rewrite:
        """Take out of an answer what the client may not see, which is asked once the answer is there."""
        seeing = Pending(pending.asked, pending.rule)

        def change(frame: bytes) -> bytes | None:
            if seeing.failed is not None:
                raise seeing.failed
            if seeing.begun is None:
                looked = partial(_look_at_answer, seeing, known, self._mono_ms(), judged, frame)
                seeing.begun = self._beside.computed(session, known, len(frame), looked)
                if seeing.begun is None:
                    return None
                self._find_out(session, known, seeing.begun.questions, seeing)
            if seeing.open_questions:
                return None
            return self._beside.computed(
                session, known, len(frame), partial(_filtered, seeing, judged, frame)
            )

        return rewriting.whole(change)


def _look_at(pending: Pending, known: Known, now_ms: int, frame: bytes) -> Begun:
    request = answers.decoded(frame)
    # Of one that names nothing the broker is asked something all the same: it may be of nobody who has logged in.
    rights = pending.rule.rights(request, pending.asked.version) or [DESCRIBE_CLUSTER]
    may: dict[Right, bool] = {}
    missing = known.missing(rights, may, now_ms)
    if len(frame) > LONG_BYTES:
        return Begun(request, may, iter(list(questions(missing))))  # made here, beside the event loop
    return Begun(request, may, questions(missing))


def _look_at_answer(seeing: Pending, known: Known, now_ms: int, judged: AnyJudged, frame: bytes) -> Begun:
    assert judged.names is not None, "what may not be seen is named"
    response = rewriting.decoded_answer(*seeing.asked[:2], frame)
    may: dict[Right, bool] = {}
    return Begun(response, may, iter(list(questions(known.missing(judged.names(response), may, now_ms)))))


def _filtered(seeing: Pending, judged: AnyJudged, frame: bytes) -> bytes:
    assert judged.keep is not None, "what may not be seen is taken out"
    assert seeing.begun is not None, "it was looked at"
    kept = judged.keep(seeing.begun.request, seeing.may.__getitem__)
    merged = kept if judged.merge is None else judged.merge(kept)
    return rewriting.encoded(*seeing.asked[:2], frame, merged)


def _settled(pending: Pending) -> Settled:
    assert pending.begun is not None, "it was looked at"
    request, version = pending.begun.request, pending.asked.version
    judged = pending.rule.judge(request, version, pending.may.__getitem__)
    left = request if judged.request is None else judged.request
    return Settled(judged, pending.rule.groups(left, version))


def _here(answer: bytes | None) -> Verdict | None:
    return None if answer is None else Verdict(HERE, answer)
