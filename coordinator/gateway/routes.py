# SPDX-License-Identifier: Apache-2.0
"""The routes of each api: on the port of a broker, and on the port of a node of ours.

`FORWARDED` has the apis that pass to a broker, in the versions of Kafka 4.4 that a gateway can pass on: Fetch only up
to v15, since later responses have addresses at their end. (Responses to DescribeQuorum have the addresses of
controllers, but no client of a broker connects to them.) Some requests and responses are changed on the way. A request
of any other api that is not answered here ends its connection, as in Kafka.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

from coordinator.api.table import AnyApi
from coordinator.gateway import answers, rewriting
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.api_versions import JUDGED_FROM, ApiVersionsHandler
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.offsets_topic_read_guard import OffsetsTopicReadGuard
from coordinator.gateway.rewriting import KERBEROS, OfferedVersions
from coordinator.gateway.routing_types import (
    BROKER,
    HERE,
    AfterLogin,
    Ask,
    ClientSession,
    Rewrite,
    Route,
    Verdict,
    leave_handler_unwrapped,
)
from protocol.apis import ApiKey, VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.headers import decode_request_header, pack_api_key_and_version
from protocol.produce_proxying import ENDPOINTS_FROM, expects_response

FORWARDED: Final[Mapping[ApiKey, VersionRange]] = {
    ApiKey.PRODUCE: VersionRange(0, 13),
    ApiKey.FETCH: VersionRange(4, 15),
    ApiKey.LIST_OFFSETS: VersionRange(1, 11),
    ApiKey.METADATA: VersionRange(0, 13),
    ApiKey.FIND_COORDINATOR: VersionRange(0, 6),
    ApiKey.SASL_HANDSHAKE: VersionRange(1, 1),  # tokens without frames follow v0
    ApiKey.API_VERSIONS: VersionRange(0, 5),
    ApiKey.CREATE_TOPICS: VersionRange(2, 7),
    ApiKey.DELETE_TOPICS: VersionRange(1, 6),
    ApiKey.DELETE_RECORDS: VersionRange(0, 2),
    ApiKey.INIT_PRODUCER_ID: VersionRange(0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: VersionRange(2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: VersionRange(0, 5),
    ApiKey.END_TXN: VersionRange(0, 5),
    ApiKey.WRITE_TXN_MARKERS: VersionRange(1, 2),
    ApiKey.DESCRIBE_ACLS: VersionRange(1, 3),
    ApiKey.CREATE_ACLS: VersionRange(1, 3),
    ApiKey.DELETE_ACLS: VersionRange(1, 3),
    ApiKey.DESCRIBE_CONFIGS: VersionRange(1, 4),
    ApiKey.ALTER_CONFIGS: VersionRange(0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: VersionRange(1, 2),
    ApiKey.DESCRIBE_LOG_DIRS: VersionRange(1, 5),
    ApiKey.SASL_AUTHENTICATE: VersionRange(0, 2),
    ApiKey.CREATE_PARTITIONS: VersionRange(0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: VersionRange(1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: VersionRange(1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: VersionRange(1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: VersionRange(1, 3),
    ApiKey.ELECT_LEADERS: VersionRange(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: VersionRange(0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: VersionRange(0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: VersionRange(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: VersionRange(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: VersionRange(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: VersionRange(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: VersionRange(0, 0),
    ApiKey.DESCRIBE_QUORUM: VersionRange(0, 2),
    ApiKey.UPDATE_FEATURES: VersionRange(0, 2),
    ApiKey.DESCRIBE_CLUSTER: VersionRange(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: VersionRange(0, 0),
    ApiKey.UNREGISTER_BROKER: VersionRange(0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: VersionRange(0, 0),
    ApiKey.LIST_TRANSACTIONS: VersionRange(0, 2),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: VersionRange(0, 0),
    ApiKey.PUSH_TELEMETRY: VersionRange(0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: VersionRange(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: VersionRange(0, 0),
}
"""The apis that pass to a broker. Not offered: transactions that commit offsets, and share and streams groups."""

NOT_ON_OURS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""The apis by which brokers ask clients for telemetry; without these apis clients stop asking (KIP-714)."""
EMPTY_ON_OURS: Final = frozenset({ApiKey.DESCRIBE_LOG_DIRS, ApiKey.LIST_TRANSACTIONS})
"""The apis for which tools ask every node, and would count the same things again."""

NODE_RESOURCES: Final = frozenset({4, 8})
"""The resource types of a broker's settings and of its loggers, in requests about settings."""
OF_NODES_BYTES_MAX: Final = 4_096
"""The length above which a request about settings names more than nodes, and so topics, which are for brokers."""

GROUP: Final = 0
KEY_TYPE_FROM: Final = 1
SEVERAL_KEYS_FROM: Final = 4
NEWEST_HEADER_BYTES_MAX: Final = 64 * 1024
ANSWERED_HERE: Final = (*answers.COORDINATED, *answers.REFUSED)
"""The apis that a gateway answers itself, or has our coordinators answer, in every version of theirs."""

AnswerOfNodes = Callable[[bytes, Sequence[Any]], bytes]
"""(a request about settings, the nodes of ours that it names) -> its response."""


class ApiRoutes:
    """The routes of one kind of port."""

    def __init__(
        self,
        book: AddressBook,
        gate: Ask,
        offloader: Offloader,
        *,
        ours: bool,
        message_bytes_max: int,
        offsets_topic: OffsetsTopicReadGuard | None = None,
        after_login: AfterLogin = leave_handler_unwrapped,
    ) -> None:
        """Route the requests on the port of a node of ours if `ours` is true, else on the port of a broker.

        `message_bytes_max` is the longest batch that our nodes take; it also limits requests about groups.
        `offsets_topic` refuses requests that read the cluster's `__consumer_offsets`. Handlers whose responses are only
        for clients that have logged in are wrapped by `after_login`.
        """
        self._book = book
        self._gate = gate
        self._offloader = offloader
        self._ours = ours
        self._offsets_topic = offsets_topic
        self._after_login = after_login
        self.found: dict[int, Route] = {}
        unknown = partial(_here, answers.make_unsupported_api_versions_response)
        self._unknown_api_versions = Route(ApiKey.API_VERSIONS, 0, unknown, NEWEST_HEADER_BYTES_MAX)
        left_out = NOT_ON_OURS if ours else frozenset()
        forwarded = {int(key): versions for key, versions in FORWARDED.items() if key not in left_out}
        here = answers.get_our_offered_versions(ANSWERED_HERE)
        here[ApiKey.API_VERSIONS] = forwarded.pop(ApiKey.API_VERSIONS)
        self.offered = OfferedVersions(forwarded, here)
        asks_for_login = after_login is not leave_handler_unwrapped
        self._api_versions = ApiVersionsHandler(book, self.offered, offloader, asks_for_login=asks_for_login)
        for key in FORWARDED.keys() - left_out:
            self._add(key, FORWARDED[key])
        for api in ANSWERED_HERE:
            for version in range(api.versions.min, api.versions.max + 1):
                ask = self._ask_about_groups(api)
                bytes_max, changes = api.frame.frame_limit_bytes(message_bytes_max), api.changes is not False
                self._put(Route(api.key, version, ask=ask, bytes_max=bytes_max, changes=changes))

    def find_unknown_version_route(self, api_key: int, version: int) -> Route | None:
        """Return a route that answers ApiVersions in every other version, as in Kafka; other apis have none."""
        return self._unknown_api_versions if api_key == ApiKey.API_VERSIONS else None

    def _put(self, added: Route) -> None:
        self.found[pack_api_key_and_version(added.api_key, added.version)] = added

    def _add(self, key: ApiKey, versions: VersionRange) -> None:
        for version in range(versions.min, versions.max + 1):
            ask = self._ask_before(key, version)
            rewrite = None if ask else self._rewrite(key, version)
            # The loss of a coordinator does not end a connection to a broker.
            refusal = (
                answers.make_error_response if key is ApiKey.FIND_COORDINATOR and not self._ours else None
            )
            answered = expects_response if key is ApiKey.PRODUCE else None
            self._put(
                Route(
                    key,
                    version,
                    ask,
                    LISTS.bytes_max,
                    rewrite,
                    refusal=refusal,
                    has_answer=answered,
                    screen=self._screen(key, version),
                )
            )

    def _screen(self, key: ApiKey, version: int) -> Callable[[bytes], Ask | None] | None:
        """Return the function that finds the requests among passing ones that need a handler, or None."""
        if key is not ApiKey.FETCH or self._offsets_topic is None:
            return None
        return self._offsets_topic.make_fetch_request_screener(version)

    def _rewrite(self, key: ApiKey, version: int) -> Rewrite | None:
        """Return the function that rewrites the responses of a broker, or None."""
        if key is ApiKey.METADATA:
            return rewriting.make_metadata_rewriter(self._book, version)
        if key is ApiKey.API_VERSIONS:
            return self._offloader.make_rewriter(
                rewriting.make_api_versions_rewriter(self.offered, version, version)
            )
        if key is ApiKey.PRODUCE and version >= ENDPOINTS_FROM:
            return self._offloader.make_rewriter(
                rewriting.make_produce_response_rewriter(self._book, version)
            )
        if key is ApiKey.DESCRIBE_CLUSTER:
            return self._offloader.make_rewriter(rewriting.make_cluster_rewriter(self._book, version))
        return None

    def _ask_before(self, key: ApiKey, version: int) -> Ask | None:
        """Return the handler of requests that do not simply pass, or None."""
        if key is ApiKey.FIND_COORDINATOR:
            rewrite = self._offloader.make_rewriter(rewriting.make_coordinator_rewriter(self._book, version))
            return partial(_find_coordinator, self._gate, rewrite)
        if key is ApiKey.API_VERSIONS and version >= JUDGED_FROM:
            return self._api_versions.handle_request
        if key is ApiKey.SASL_HANDSHAKE:
            return partial(_sasl_handshake, self._offloader)
        if self._ours and key in EMPTY_ON_OURS:
            return self._after_login(partial(_here, answers.make_empty_response))
        if self._ours and key is ApiKey.DESCRIBE_CONFIGS:
            return self._after_login(
                partial(_settings_of_nodes, self._book, answers.make_empty_configs_response)
            )
        if self._ours and key is ApiKey.INCREMENTAL_ALTER_CONFIGS:
            return self._after_login(
                partial(_settings_of_nodes, self._book, answers.make_incremental_alter_configs_response)
            )
        return None

    def _ask_about_groups(self, api: AnyApi) -> Ask:
        if api in answers.REFUSED:
            return self._after_login(partial(_refused, self._offloader, ErrorCode.UNSUPPORTED_VERSION))
        if self._ours:
            return self._gate
        if api.key is ApiKey.LIST_GROUPS:
            return self._after_login(partial(_here, answers.make_empty_response))
        return self._after_login(partial(_refused, self._offloader, ErrorCode.NOT_COORDINATOR))


def _here(answer: Callable[[bytes], bytes], _session: ClientSession, _route: Route, frame: bytes) -> Verdict:
    return Verdict(HERE, answer(frame))


def _settings_of_nodes(
    book: AddressBook, answer: AnswerOfNodes, _session: ClientSession, asked: Route, frame: bytes
) -> Verdict:
    """Answer a request about our nodes alone, as of tools that ask every node; a broker would refuse their ids."""
    if len(frame) > OF_NODES_BYTES_MAX:
        return Verdict(BROKER)
    request = answers.decode_broker_request(frame)
    ours = {str(node_id) for node_id in book.nodes}
    if not request.resources or any(
        each.resource_type not in NODE_RESOURCES or each.resource_name not in ours
        for each in request.resources
    ):
        return Verdict(BROKER)
    return Verdict(HERE, answer(frame, request.resources))


async def _refused(
    offloader: Offloader, error: ErrorCode, session: ClientSession, _route: Route, frame: bytes
) -> Verdict:
    refused = partial(answers.make_error_response, frame, error)
    return Verdict(HERE, await offloader.run(session, refused, is_long=is_long(frame)))


def _find_coordinator(
    gate: Ask, rewrite: Rewrite, session: ClientSession, asked: Route, frame: bytes
) -> Verdict | Coroutine[Any, Any, Verdict]:
    """Find groups at our nodes, and everything else at the brokers."""
    if _key_type(asked.version, frame) == GROUP:
        return gate(session, asked, frame)
    return Verdict(BROKER, rewrite=rewrite)


def _key_type(version: int, frame: bytes) -> int:
    """Return the type of key for which a coordinator is wanted. Raises ProtocolError."""
    if version >= SEVERAL_KEYS_FROM:  # the key type comes first, and the rest may be long
        _, pos = decode_request_header(frame, answers.find_request_api(frame).flexible)
        return frame[pos] if pos < len(frame) else GROUP
    return GROUP if version < KEY_TYPE_FROM else int(answers.decode_coordinator_request(frame).key_type)


def _sasl_handshake(offloader: Offloader, session: ClientSession, asked: Route, frame: bytes) -> Verdict:
    session.login_has_begun = True
    refused = answers.decode_broker_request(frame).mechanism == KERBEROS
    change = rewriting.make_handshake_rewriter(asked.version, refused=refused)
    return Verdict(BROKER, rewrite=offloader.make_rewriter(change))
