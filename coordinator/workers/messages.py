# SPDX-License-Identifier: Apache-2.0
"""What the supervisor and its workers say to each other: MessagePack in frames with a length, in order.

Both ends are of the same build, so there are no versions.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from coordinator.catalogue.changes import Changes
from coordinator.catalogue.topic import Topic
from coordinator.config import Settings
from coordinator.node import EndsByTopic
from coordinator.topology.gateway_view import GatewayView, UpstreamState
from coordinator.topology.view import View
from protocol.errors import ProtocolError
from protocol.framing import LENGTH_BYTES, FrameReader
from protocol.names import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import Position

MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Topics are sent in pieces of some 64 KB, so what is longest grows with the partitions of one topic, or with those of
`__consumer_offsets`: 100,000 of them take less than a megabyte."""


NO_MESSAGE: Final = (ProtocolError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes raise that are no message: a bad length, bad MessagePack, text that is not UTF-8, lists in lists."""


class _Message(msgspec.Struct, frozen=True, tag=True):
    """One message; the class's name says which."""


# --- from the supervisor


class Welcome(_Message, frozen=True):
    """The first: who the worker is and what it finds. `restarts` is how often its node has died before."""

    settings: Settings
    cluster_id: str
    topic_id: bytes
    offsets_topic: Topic
    view: View
    restarts: int


class Lead(_Message, frozen=True):
    """Open this partition and serve it once the topics are here as they were when this was sent, or newer.

    It is on disk up to `recovery_point`, at `position`. A worker with older topics would take commits to those that
    were deleted, which counts as dropped here already.
    """

    partition: Partition
    leader_epoch: LeaderEpoch
    recovery_point: Offset
    position: Position | None
    topics_version: int


class DeletedMeanwhile(_Message, frozen=True):
    """These topics were deleted, and no leader of the partition has dropped their offsets: the next one is to do it."""

    partition: Partition
    topics: Sequence[str]


class DropsNoted(_Message, frozen=True):
    """What the Dropped of this number has said is on disk."""

    number: int


class Resign(_Message, frozen=True):
    """Serve this partition no more, close it, and say so."""

    partition: Partition
    leader_epoch: LeaderEpoch


class Viewed(_Message, frozen=True):
    """Who is there and who leads what has changed."""

    view: View


class AllTopics(_Message, frozen=True, omit_defaults=True):
    """All topics as of `version`, from the message that is the first to the one that is the last."""

    version: int
    topics: Sequence[Topic] = ()
    is_first: bool = False
    is_last: bool = False


class TopicsChanged(_Message, frozen=True):
    """What makes the topics of `version` out of those of the version before. A worker with any other one asks anew."""

    version: int
    changes: Changes


class Changed(_Message, frozen=True):
    """The answer to a ChangeTopics, which counts once the worker's topics are of `version`.

    `conflict` when the topics were not as the worker believed.
    """

    version: int
    conflict: bool
    error: str = ""


class EndsWanted(_Message, frozen=True):
    """What has this group of yours committed in these partitions, by topic?"""

    request: int
    group_id: GroupId
    partitions: dict[str, tuple[int, ...]]


class EndsAnswer(_Message, frozen=True):
    """What the group's node says, for the worker that asked; None if that is not known now."""

    request: int
    ends: EndsByTopic | None


class ClusterEnds(_Message, frozen=True):
    """The answer to an AskClusterEnds: by topic and partition the high watermark and the last stable offset.

    What the cluster does not say now is left out; None if it cannot be asked.
    """

    request: int
    ends: dict[str, dict[int, tuple[int, int]]] | None


class Stop(_Message, frozen=True):
    """Give back everything and end."""


class UpstreamSeen(_Message, frozen=True):
    """How the cluster is that a gateway stands before."""

    state: UpstreamState


# --- from the supervisor to a gateway


class GatewayWelcome(_Message, frozen=True):
    """The first: the settings, and what there is."""

    settings: Settings
    index: int
    view: GatewayView


class GatewayViewed(_Message, frozen=True):
    """Our nodes, or the cluster's brokers, have changed."""

    view: GatewayView


class ForgetGroup(_Message, frozen=True):
    """A group is the cluster's again: it has to be taken over before anything is said of it."""

    group_id: str


class TopicsLookedFor(_Message, frozen=True):
    """Those of these topics that the cluster has are known to all workers by now, or will be some time later.

    Of each: how many partitions were asked about, and how many all workers know; 0 where some may not know the topic.
    """

    names: dict[str, tuple[int, int]]
    ids: dict[bytes, tuple[int, int]]


class StopAccepting(_Message, frozen=True):
    """Let nobody connect any more; who is there may go on. Stop follows."""


# --- from a gateway


class GatewayServes(_Message, frozen=True):
    """The gateway listens on its ports."""


class TopicsSeen(_Message, frozen=True):
    """Clients name these topics, by name or id, for the first time, or so many partitions of them as never before.

    A TopicsLookedFor answers.
    """

    names: dict[str, int]
    ids: dict[bytes, int]


class BrokerSeen(_Message, frozen=True):
    """The cluster has named a broker to a client that is not in the view."""

    node_id: int


# --- from a worker


class Serves(_Message, frozen=True):
    """The worker listens there; `metrics` is a URL."""

    listen: tuple[str, int]
    advertised: tuple[str, int]
    metrics: str | None


class CannotServe(_Message, frozen=True):
    """The worker ends, for this reason, which somebody has to see to."""

    reason: str


class Loaded(_Message, frozen=True):
    """A partition that the worker is to lead is served; or it cannot be, and why."""

    partition: Partition
    leader_epoch: LeaderEpoch
    failure: str | None = None


class Dropped(_Message, frozen=True):
    """These partitions hold no offsets in topics that went up to this version any more, and that is durable.

    So they do of topics that the worker heard of with the Lead of a partition. `number` is that of the message;
    DropsNoted answers it.
    """

    version: int
    partitions: Sequence[Partition]
    number: int


class Released(_Message, frozen=True):
    """A partition is closed and on disk; `position` is its end, None if it was not opened yet or is empty."""

    partition: Partition
    leader_epoch: LeaderEpoch
    position: Position | None


class ChangeTopics(_Message, frozen=True):
    """Make these changes together with those sent before them, up to the message that is the last; or none of them."""

    changes: Changes
    is_last: bool


class AskTopics(_Message, frozen=True):
    """Send AllTopics: a change has been missed."""


class GivenBack(_Message, frozen=True):
    """A group is the cluster's again."""

    group_id: str


class HasTopics(_Message, frozen=True):
    """Behind a gateway: the worker has the topics of this version."""

    version: int


class LookAgain(_Message, frozen=True):
    """A client names a topic that is not known here: the cluster may have it."""


class AskEnds(_Message, frozen=True):
    """What has this group, of another node, committed in these partitions, by topic?"""

    request: int
    group_id: GroupId
    partitions: dict[str, tuple[int, ...]]


class AskClusterEnds(_Message, frozen=True):
    """Where do these partitions, by topic, end in the cluster that a gateway stands before?"""

    request: int
    partitions: dict[str, tuple[int, ...]]


class EndsTold(_Message, frozen=True):
    """The answer to an EndsWanted; None where the node does not serve the group."""

    request: int
    ends: EndsByTopic | None


FromSupervisor = (
    Welcome
    | Lead
    | DeletedMeanwhile
    | DropsNoted
    | Resign
    | Viewed
    | AllTopics
    | TopicsChanged
    | Changed
    | EndsWanted
    | EndsAnswer
    | UpstreamSeen
    | ClusterEnds
    | Stop
)
FromWorker = (
    Serves
    | CannotServe
    | Loaded
    | Dropped
    | Released
    | ChangeTopics
    | AskTopics
    | LookAgain
    | HasTopics
    | GivenBack
    | AskEnds
    | AskClusterEnds
    | EndsTold
)
ToGateway = GatewayWelcome | GatewayViewed | ForgetGroup | TopicsLookedFor | StopAccepting | Stop
FromGateway = GatewayServes | CannotServe | BrokerSeen | TopicsSeen


def _enc_hook(value: object) -> str:
    assert isinstance(value, Path), f"{value!r}: a message holds paths, and else only what msgspec knows"
    return str(value)


def _dec_hook(kind: type, value: Any) -> Path:
    assert issubclass(kind, Path), f"{kind}: a message holds paths, and else only what msgspec knows"
    return kind(value)  # what is no text is a TypeError, of which msgspec makes a ValidationError


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_enc_hook)


def encode(message: msgspec.Struct) -> bytes:
    """A message with its length before it."""
    body = _ENCODER.encode(message)
    if len(body) > MESSAGE_BYTES_MAX:
        raise ValueError(f"a {type(message).__name__} of {len(body)} bytes, more than {MESSAGE_BYTES_MAX}")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Channel(asyncio.Protocol):
    """One end of the socket between the supervisor and a worker, or somebody with an order.

    `on_message` gets each message in turn; `on_lost` is called once the other end is gone, or has said something
    that makes no sense, with the reason.
    """

    def __init__(
        self,
        kind: Any,
        on_message: Callable[[Any], None],
        on_lost: Callable[[str], None],
        *,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_dec_hook)
        self._on_message = on_message
        self._on_lost = on_lost
        self._frames = FrameReader(message_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._problem = "the other end closed the connection"
        self.was_nonsense = False
        """Whether the other end has sent what is no message."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand on whole messages."""
        for message in self._decoded(data):
            self._on_message(message)

    def _decoded(self, data: bytes) -> Iterator[Any]:
        try:
            for frame in self._frames.feed(data):
                yield self._decoder.decode(frame)
            if self._frames.failure is not None:
                raise self._frames.failure
        except NO_MESSAGE as error:
            self.was_nonsense = True
            self._problem = f"the other end sent what is no message: {error}"
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that the other end is gone."""
        self._transport = None
        self._room.set()
        self._on_lost(self._problem if exc is None else str(exc))

    def send(self, message: msgspec.Struct) -> None:
        """Send one message; it is lost once the other end is gone."""
        self.write(encode(message))

    def write(self, frame: bytes) -> None:
        """Send an encoded message."""
        if self._transport is not None:
            self._transport.write(frame)

    @property
    def is_open(self) -> bool:
        """Whether there is another end."""
        return self._transport is not None

    async def drained(self) -> None:
        """Return once the other end has read enough for more to be sent, or is gone."""
        await self._room.wait()

    def pause_writing(self) -> None:
        """What was sent waits to be read."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Enough of it was read."""
        self._room.set()

    def close(self) -> None:
        """Send what is left and close."""
        if self._transport is not None:
            self._transport.close()
