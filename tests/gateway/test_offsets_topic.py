# SPDX-License-Identifier: Apache-2.0
"""The cluster's `__consumer_offsets` is not read through a gateway, and whoever tries is told so each time."""

from typing import Any, Final
from uuid import UUID

import confluent_kafka as ck
import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.offsets_topic_read_guard import REFUSED, OffsetsTopicReadGuard
from coordinator.gateway.routes import FORWARDED, ApiRoutes
from coordinator.gateway.routing_types import BROKER
from coordinator.gateway.session import Session
from coordinator.telemetry.incidents import REMIND_MS
from protocol.apis import ApiKey
from protocol.client_frames import LENGTH_BYTES, decode_answer, encode_request
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, encode_response, has_flexible_response_header
from protocol.kafka_python_messages import FetchRequest, FetchResponse, MetadataRequest
from protocol.message_codecs import find_message_codec
from tests.gateway.peers import AT_ONCE, RecordedIO
from tests.gateway.rig import passes, read_request
from tests.gateway.test_gate import frames
from tests.gateway.whole import Whole
from tests.support.log_lines import LogLines, captured
from tests.support.raw import RawConnection, wait_for_coordinator
from tests.support.waiting import wait_until

VERSIONS: Final = range(FORWARDED[ApiKey.FETCH].min, FORWARDED[ApiKey.FETCH].max + 1)
SESSIONS_FROM: Final = 7
OFFSETS: Final = "__consumer_offsets"
IDS: Final = {OFFSETS: UUID(int=77), "t": UUID(int=78)}
DENIED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
RECORDS: Final = b"records" * 100

every_version = pytest.mark.parametrize("version", VERSIONS)


def fetch(version: int, *topics: str, session: tuple[int, int] = (0, 0)) -> Any:
    """Of the partitions 0 and 3 of each topic."""
    kind = FetchRequest.FetchTopic
    named = [
        kind(
            version=version,
            topic=name,
            topic_id=IDS[name],
            partitions=[
                kind.FetchPartition(
                    version=version, partition=each, fetch_offset=0, partition_max_bytes=1_000_000
                )
                for each in (0, 3)
            ],
        )
        for name in topics
    ]
    session_id, epoch = session
    return FetchRequest(
        version=version,
        max_wait_ms=10,
        min_bytes=1,
        topics=named,
        forgotten_topics_data=[],
        session_id=session_id,
        session_epoch=epoch,
    )


def fetched(version: int, *topics: str, error: int = 0) -> Any:
    """What a broker answers."""
    kind = FetchResponse.FetchableTopicResponse
    rows = [
        kind(
            version=version,
            topic=name,
            topic_id=IDS[name],
            partitions=[
                kind.PartitionData(
                    version=version,
                    partition_index=each,
                    error_code=0,
                    high_watermark=9,
                    last_stable_offset=9,
                    log_start_offset=0,
                    aborted_transactions=[],
                    preferred_read_replica=-1,
                    records=RECORDS,
                )
                for each in (0, 3)
            ],
        )
        for name in topics
    ]
    return FetchResponse(version=version, throttle_time_ms=5, error_code=error, session_id=0, responses=rows)


class Play:
    """A client of a broker's port, and the broker."""

    def __init__(self, version: int, client_id: str = "monitor", *, knows_id: bool = True) -> None:
        self.version = version
        self.client_id = client_id
        self.now_ms = 0
        book = AddressBook(lambda _: None, lambda *_: None)
        book.offsets_topic_id = IDS[OFFSETS].bytes if knows_id else None
        topic = OffsetsTopicReadGuard(book, AT_ONCE, lambda: self.now_ms)
        routes = ApiRoutes(book, passes, AT_ONCE, ours=False, message_bytes_max=1 << 20, offsets_topic=topic)
        self.io = RecordedIO()
        self.session = Session(self.io, routes, 1 << 20)
        self.codec = find_message_codec(ApiKey.FETCH, version)

    def frame(self, request: Any) -> bytes:
        return encode_request(
            self.codec, RequestHeader(ApiKey.FETCH, self.version, 5, self.client_id), request
        )

    def send(self, request: Any) -> bytes:
        """Send a Fetch in two pieces; what the broker gets of it."""
        frame = self.frame(request)
        for piece in (frame[:-3], frame[-3:]):
            self.session.receive_from_client(memoryview(piece))
        sent = bytes(self.io.pipelines[BROKER])
        self.io.pipelines[BROKER].clear()
        return sent

    def answer(self, response: Any) -> bytes:
        """The broker's answer, which comes byte by byte; what the client gets of it."""
        tagged = has_flexible_response_header(ApiKey.FETCH, self.codec.flexible)
        frame = encode_response(5, self.codec.encode_response(response), tagged)
        for index in range(len(frame)):
            self.session.receive_from_pipeline(BROKER, memoryview(frame[index : index + 1]))
        return self.received()

    def received(self) -> bytes:
        assert self.io.error is None
        assert not self.io.has_failed
        (frame,) = frames(self.io.client)
        return frame

    def rows(self, frame: bytes) -> dict[tuple[Any, int], tuple[int, bytes]]:
        """Error and records by topic and partition, in their order."""
        response = decode_answer(self.codec, ApiKey.FETCH, frame, LENGTH_BYTES)
        assert response.session_id in (0, None)
        return {
            (self.name_of(topic), part.partition_index): (part.error_code, bytes(part.records or b""))
            for topic in response.responses
            for part in topic.partitions
        }

    def name_of(self, topic: Any) -> str:
        by_id = {each: name for name, each in IDS.items()}
        return str(topic.topic if self.version < 13 else by_id[topic.topic_id])


@every_version
@pytest.mark.parametrize("beside", [("t",), ()])
def test_the_topic_is_refused_and_what_else_is_read_passes(version: int, beside: tuple[str, ...]) -> None:
    play = Play(version)
    request = read_request(play.send(fetch(version, OFFSETS, *beside, session=(0, 0)))[LENGTH_BYTES:])
    assert [play.name_of(topic) for topic in request.topics] == [*beside]
    assert version < SESSIONS_FROM or (request.session_id, request.session_epoch) == (0, -1)
    assert play.rows(play.answer(fetched(version, *beside))) == {
        (OFFSETS, 0): (DENIED, b""),
        (OFFSETS, 3): (DENIED, b""),
        **{(name, each): (0, RECORDS) for name in beside for each in (0, 3)},
    }


@every_version
def test_what_does_not_name_the_topic_passes_as_it_is(version: int) -> None:
    play = Play(version)
    request = fetch(version, "t", session=(7, 3))
    assert play.send(request) == play.frame(request)
    answer = play.answer(fetched(version, "t"))
    assert answer == encode_response(
        5, play.codec.encode_response(fetched(version, "t")), play.codec.flexible
    )


@every_version
def test_a_client_that_is_called_as_the_topic_reads_others(version: int) -> None:
    play = Play(version, client_id=f"{OFFSETS}{IDS[OFFSETS].bytes.decode('latin-1')}")
    request = fetch(version, "t", session=(7, 3))
    with captured() as lines:
        assert play.send(request) == play.frame(request)
    assert lines.events == []


@pytest.mark.parametrize("version", VERSIONS[SESSIONS_FROM - VERSIONS[0] :])
def test_a_fetch_session_that_comes_to_the_topic_is_to_begin_anew(version: int) -> None:
    play = Play(version)
    assert play.send(fetch(version, OFFSETS, session=(7, 3))) == b""
    response = decode_answer(play.codec, ApiKey.FETCH, play.received(), LENGTH_BYTES)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert response.responses == []


@pytest.mark.parametrize("version", VERSIONS[SESSIONS_FROM - VERSIONS[0] :])
def test_an_answer_that_is_an_error_stays_one(version: int) -> None:
    play = Play(version)
    play.send(fetch(version, OFFSETS, "t"))
    error = int(ErrorCode.UNKNOWN_SERVER_ERROR)
    answer = decode_answer(play.codec, ApiKey.FETCH, play.answer(fetched(version, error=error)), LENGTH_BYTES)
    assert (answer.error_code, answer.responses) == (error, [])


def test_by_an_id_that_is_not_known_the_topic_passes() -> None:
    play = Play(13, knows_id=False)
    request = fetch(13, OFFSETS)
    assert play.send(request) == play.frame(request)


def refused(lines: LogLines) -> list[str]:
    return [fields["client_id"] for fields in lines.fields(REFUSED)]


def test_the_log_says_once_a_minute_who_reads_it() -> None:
    play = Play(4)
    with captured() as lines:
        for _ in range(3):
            play.send(fetch(4, OFFSETS))
            play.answer(fetched(4))
        assert refused(lines) == ["monitor"]
        play.now_ms += REMIND_MS
        play.send(fetch(4, OFFSETS))
    assert refused(lines) == ["monitor"] * 2


# --- a real cluster ---


@pytest.fixture(scope="module")
def offsets_id(whole: Whole) -> UUID:
    """The id of the cluster's topic, once the gateway knows it, too."""
    wait_for_coordinator(whole.cluster.address(1), "any")
    kind = MetadataRequest.MetadataRequestTopic
    with RawConnection(whole.cluster.address(1)) as connection:
        request = MetadataRequest(topics=[kind(name=OFFSETS)], allow_auto_topic_creation=False)
        (topic,) = connection.call(request, 12).topics
    topic_id: UUID = topic.topic_id
    return topic_id


@pytest.mark.kafka
@pytest.mark.slow
@every_version
def test_no_version_reads_it(whole: Whole, offsets_id: UUID, version: int) -> None:
    request = fetch(version, OFFSETS)
    for topic in request.topics:
        topic.topic_id = offsets_id

    def errors() -> set[int]:
        with RawConnection(f"127.0.0.1:{whole.broker_port(1)}") as connection:
            answer = connection.call(request, version)
        return {part.error_code for topic in answer.responses for part in topic.partitions}

    wait_until(lambda: errors() == {DENIED}, what="the gateway to know the topic's id")
    with RawConnection(whole.cluster.address(1)) as connection:
        answer = connection.call(request, version)
    assert {part.error_code for topic in answer.responses for part in topic.partitions} == {0}


@pytest.mark.kafka
@pytest.mark.slow
def test_librdkafka_says_so(whole: Whole, offsets_id: UUID) -> None:
    consumer = ck.Consumer({"bootstrap.servers": whole.brokers, "group.id": "monitor"})
    try:
        consumer.assign([ck.TopicPartition(OFFSETS, 0, 0)])
        found = consumer.poll(120)  # it says the same only once
        assert found is not None
        error = found.error()
        assert error is not None
        assert error.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        consumer.close()


@pytest.mark.kafka
@pytest.mark.slow
def test_kafka_python_says_so(whole: Whole, offsets_id: UUID) -> None:
    consumer = KafkaConsumer(bootstrap_servers=whole.brokers, group_id=None)
    try:
        consumer.assign([TopicPartition(OFFSETS, 0)])
        consumer.seek(TopicPartition(OFFSETS, 0), 0)
        for _ in range(2):
            with pytest.raises(TopicAuthorizationFailedError):
                consumer.poll(timeout_ms=120_000)
    finally:
        consumer.close()
