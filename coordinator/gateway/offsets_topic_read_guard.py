# SPDX-License-Identifier: Apache-2.0
"""Refuses Fetch requests for the cluster's `__consumer_offsets` with TOPIC_AUTHORIZATION_FAILED.

Commits of groups that have moved here are not in that topic. A monitor that reads it would show offsets that stand
still, and lag that grows for ever. Our own topic has only the groups that are here. So such a monitor is misled by
both, and is to use the admin apis. The error is the one that all clients show to their users.

A Fetch that names the topic is sent to the broker without it, and the topic's partitions are put into the response. It
is sent outside of a fetch session (KIP-227), so that clients name all partitions each time, and get the error each
time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.gateway import answers
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.routing_types import (
    BROKER,
    HERE,
    LENGTH_BYTES,
    UNCHANGED,
    AfterLogin,
    Ask,
    ClientSession,
    Rewritten,
    Route,
    Verdict,
    leave_handler_unwrapped,
)
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.fixed_integers import int16_at, int32_at
from protocol.headers import decode_request_header
from protocol.kafka_python_messages import FetchResponse
from protocol.message_codecs import find_message_codec
from protocol.wire import PACK_INT32, pack_frame_length, pack_uvarint, read_uvarint

log = get_logger("gateway")

SESSIONS_FROM: Final = 7
TOPIC_IDS_FROM: Final = 13
FLEXIBLE_FROM: Final = 12
NO_SESSION: Final = 0
SESSIONLESS: Final = -1
"""The epoch of a Fetch without a session (FetchMetadata.FINAL_EPOCH)."""
BODY_AT: Final = 8
"""The position of the body in a response without tags, behind its length and correlation id."""
ERROR_AT: Final = 4
"""The position of the error in a response body, behind the throttle time."""
COUNT_BYTES_MAX: Final = 5
REFUSED: Final = (
    "a client reads the cluster's __consumer_offsets, where groups that have moved here are missing"
)
INSTEAD: Final = (
    "read committed offsets by the admin apis (kminion: scrapeMode adminApi), or lag from /metrics"
)


class OffsetsTopicReadGuard:
    """Finds requests that read the cluster's `__consumer_offsets`, and refuses them."""

    def __init__(
        self,
        book: AddressBook,
        offloader: Offloader,
        mono_ms: Callable[[], int],
        after_login: AfterLogin = leave_handler_unwrapped,
    ) -> None:
        self._book = book
        self._decide = after_login(self._refuse)
        self._offloader = offloader
        self._incidents = Incidents(log, mono_ms, "warning")

    def make_fetch_request_screener(self, version: int) -> Callable[[bytes], Ask | None]:
        """Return a function from a Fetch of this version to its handler, or to None if it cannot name the topic."""
        name = OFFSETS_TOPIC.encode()

        def screened(request: bytes) -> Ask | None:
            topic = name if version < TOPIC_IDS_FROM else self._book.offsets_topic_id
            return None if topic is None or topic not in request else self._decide

        return screened

    async def _refuse(self, session: ClientSession, route: Route, frame: bytes) -> Verdict:
        decide = partial(_without_offsets, route.version, frame, self._book.offsets_topic_id)
        verdict, client_id = await self._offloader.run(session, decide, is_long=is_long(frame))
        if client_id is not None:
            self._incidents.log_repeated_failure(client_id, REFUSED, client_id=client_id, instead=INSTEAD)
        return verdict


def _without_offsets(version: int, frame: bytes, topic_id: bytes | None) -> tuple[Verdict, str | None]:
    """Return the verdict on a Fetch, and the id of its client if the Fetch names the topic."""
    request = answers.decode_broker_request(frame)
    named = [topic for topic in request.topics if _is_offsets_topic(topic, version, topic_id)]
    if not named:
        return Verdict(BROKER), None
    client_id = decode_request_header(frame, version >= FLEXIBLE_FROM)[0].client_id or ""
    if version >= SESSIONS_FROM and request.session_epoch > 0:
        # A request within a fetch session leaves out topics that it has named before: the client has to start a new
        # session.
        error = FetchResponse(
            version=version, error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), responses=[]
        )
        body = find_message_codec(ApiKey.FETCH, version).encode_response(error)
        return Verdict(HERE, answers.make_response_with_body(frame, body)), client_id
    request.topics = [topic for topic in request.topics if topic not in named]
    request.session_id, request.session_epoch = NO_SESSION, SESSIONLESS
    rewrite = partial(_with_refusals, version, _refusals(version, named), len(named))
    return Verdict(BROKER, answers.encode_changed_request(frame, request), rewrite), client_id


def _is_offsets_topic(topic: Any, version: int, topic_id: bytes | None) -> bool:
    if version < TOPIC_IDS_FROM:
        return bool(topic.topic == OFFSETS_TOPIC)
    return topic.topic_id is not None and topic.topic_id.bytes == topic_id


def _refusals(version: int, named: list[Any]) -> bytes:
    """Encode the topics of a response in which every partition is refused, as they stand in its list."""
    make = FetchResponse.FetchableTopicResponse
    rows = [
        make(
            version=version,
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[_refused(version, each.partition) for each in topic.partitions],
        )
        for topic in named
    ]
    body = find_message_codec(ApiKey.FETCH, version).encode_response(
        FetchResponse(
            version=version, throttle_time_ms=0, error_code=0, session_id=NO_SESSION, responses=rows
        )
    )
    tags = 1 if version >= FLEXIBLE_FROM else 0
    return body[_count(body, _count_at(version), version)[1] : len(body) - tags]


def _refused(version: int, partition: int) -> Any:
    return FetchResponse.FetchableTopicResponse.PartitionData(
        version=version,
        partition_index=partition,
        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=[],
        preferred_read_replica=-1,
        records=b"",
    )


def _with_refusals(version: int, refusals: bytes, count: int, _client: object, frame: bytes) -> Rewritten:
    """Add topics at the beginning of the list in a response to Fetch."""
    head = BODY_AT + (1 if version >= FLEXIBLE_FROM else 0)
    pos = head + _count_at(version)
    if len(frame) < pos + COUNT_BYTES_MAX and len(frame) < LENGTH_BYTES + int32_at(frame, 0):
        return None
    if version >= SESSIONS_FROM and int16_at(frame, head + ERROR_AT) != ErrorCode.NONE:
        return UNCHANGED
    topics, end = _count(frame, pos, version)
    counted = pack_uvarint(topics + count + 1) if version >= FLEXIBLE_FROM else PACK_INT32(topics + count)
    size = int32_at(frame, 0) + len(counted) - (end - pos) + len(refusals)
    return pack_frame_length(size) + frame[LENGTH_BYTES:pos] + counted + refusals, end


def _count_at(version: int) -> int:
    """Return the position of the topic count in a response's body: behind throttle time, error and session."""
    return ERROR_AT + (6 if version >= SESSIONS_FROM else 0)


def _count(data: bytes, pos: int, version: int) -> tuple[int, int]:
    """Return how many topics a response has, and where the first one begins."""
    if version < FLEXIBLE_FROM:
        return int32_at(data, pos), pos + 4
    count, end = read_uvarint(data, pos)
    return count - 1, end
