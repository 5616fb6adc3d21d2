# SPDX-License-Identifier: Apache-2.0
"""Sends all requests as all users to one address, and returns the answers as text."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from protocol.apis import ApiKey
from protocol.kafka_python_messages import MetadataRequest, find_request_and_response_classes
from tests.gateway.matrix.permission_sets import ADMIN, PermissionSet
from tests.gateway.matrix.recording import Part, Recording
from tests.gateway.matrix.requests import (
    GROUPS,
    NAMES,
    TOPICS,
    Asked,
    Kind,
    TopicIds,
    absent_ids,
    commit_of,
    kinds,
)
from tests.kafka.cluster import USERS
from tests.kafka.differential.render import (
    UNORDERED,
    UNORDERED_IF_ALL,
    Fields,
    Names,
    Reading,
    inline,
    response_fields,
)
from tests.support.raw import RawConnection
from tests.support.waiting import wait_until

CLOSED: Final = "closed"
"""Stands for the answer if the server closes the connection instead."""
NODES: Final = frozenset({"brokers", "controller_id"})
"""Fields that are left out of answers: a gateway adds a node."""
ADDRESS: Final = ("node_id", "host", "port")
NO_PORT: Final = 0
IN_ANY_ORDER: Final[Mapping[ApiKey, frozenset[str]]] = {
    # Kafka lists absent topics with the refused ones, a gateway with the others
    ApiKey.OFFSET_COMMIT: frozenset({"topics", "partitions"}),
    ApiKey.OFFSET_DELETE: frozenset({"topics", "partitions"}),
    # shuffled, so that their order does not say which topics exist (ControllerApis)
    ApiKey.DELETE_TOPICS: frozenset({"responses"}),
}
"""Further arrays of responses that are sorted."""
SETTINGS: Final = frozenset({"retention.ms", "log.cleaner.threads", "consumer.session.timeout.ms"})
"""The settings that are kept in an answer of CreateTopics, which has all of them."""
THE_REQUEST: Final = re.compile(r"Request\(processor=.*\)")
"""A request in an error message, with ports and times."""


def topic_ids(bootstrap: str, names: Iterable[str] = NAMES) -> dict[str, UUID]:
    """Return topics' ids, from a listener that needs no permissions; absent ones of NAMES have ids of no topic."""
    with RawConnection(bootstrap) as connection:
        answer = connection.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
    found = {topic.name: topic.topic_id for topic in answer.topics}
    absent = absent_ids()
    return {name: found[name] if name in found else absent[name] for name in names}


def logged_in(bootstrap: str, user: str, source: str = "") -> RawConnection:
    """A connection of this user, from the address `source` if one is given."""
    connection = RawConnection(bootstrap, source=source)
    shaken = connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert shaken.error_code == 0
    token = f"\0{user}\0{USERS.get(user, user)}".encode()
    assert connection.call(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
    return connection


def play(
    bootstrap: str,
    sets: Iterable[PermissionSet],
    ids: TopicIds,
    apis: Container[ApiKey] = frozenset(ApiKey),
    commits_at: str | None = None,
) -> Recording:
    """Send every request of these apis as every user; the groups' offsets are committed at `commits_at`, if given."""
    with logged_in(commits_at or bootstrap, ADMIN) as admin:
        wait_until(lambda: _commit_all(admin), what="the offsets of all groups")
        asked = [kind for kind in kinds(ids) if kind.requests[0].api in apis]
        played = {kind.name: Part(tuple(each.name for each in kind.requests)) for kind in asked}
        for each in sets:
            with Player(bootstrap, each.user, admin, ids) as player:
                for kind in asked:
                    played[kind.name].cases[each.user] = player.answers(kind)
    return played


def _commit_all(admin: RawConnection) -> bool:
    """Commit the offsets that all groups have; return whether all were accepted."""
    requests = [
        Asked("", ApiKey.OFFSET_COMMIT, 8, commit_of(group, TOPICS, partitions=[0])) for group in GROUPS
    ]
    answers = [admin.call(each.message(), each.version) for each in requests]
    errors = {row.error_code for each in answers for topic in each.topics for row in topic.partitions}
    return errors == {0}


class Player:
    """One user."""

    def __init__(self, bootstrap: str, user: str, admin: RawConnection, ids: TopicIds) -> None:
        """`admin` commits again what the user has deleted."""
        self._bootstrap = bootstrap
        self._user = user
        self._admin = admin
        self._ids = ids
        self._connection = logged_in(bootstrap, user)

    def __enter__(self) -> "Player":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def answers(self, kind: Kind) -> tuple[str, ...]:
        """Send the requests of a kind and return their answers."""
        return tuple(map(self._answer, kind.requests))

    def _answer(self, asked: Asked) -> str:
        try:
            response = self._connection.call(asked.message(), asked.version)
        except ConnectionError:
            self._connection.close()
            self._connection = logged_in(self._bootstrap, self._user)
            return CLOSED
        finally:
            if asked.is_change:
                assert _commit_all(self._admin), f"offsets are refused after {asked.name} of {self._user}"
        return shown(asked, response, self._ids)


def shown(asked: Asked, response: Any, ids: TopicIds) -> str:
    """Return a response as one line, without fields that have the default of the schema (errors stay)."""
    names = Names("", NO_PORT, {})
    for name, topic_id in ids.items():
        names.know_topic(topic_id, name)
    schema = find_request_and_response_classes(asked.api)[1]
    fields = response_fields(_reading(asked), response, names)
    return inline(_kept(schema.fields, fields), names)


def _reading(asked: Asked) -> Reading:
    """Error messages are kept: a gateway's must be Kafka's."""
    arrays = [each.get(asked.api, frozenset()) for each in (UNORDERED, UNORDERED_IF_ALL, IN_ANY_ORDER)]
    return Reading(asked.api, asked.version, frozenset().union(*arrays), texts=True)


def _kept(schema: Mapping[str, Any], fields: Mapping[str, Any]) -> Fields:
    """Return the fields that are not defaults and are the same on every server and in every run."""
    kept: Fields = {}
    for name, value in fields.items():
        if name in NODES or (name in ADDRESS and fields.get("node_id", -1) >= 0):
            continue
        if schema[name].is_struct_array() and value:
            kept[name] = [_kept(schema[name].array_of.fields, each) for each in value if _is_kept(each)]
        elif name == "error_code" or value != schema[name].default:
            kept[name] = THE_REQUEST.sub("<the request>", value) if isinstance(value, str) else value
    return kept


def _is_kept(item: Fields) -> bool:
    """Whether this is not one of the settings that CreateTopics returns and nobody asked for."""
    return "config_source" not in item or item["name"] in SETTINGS
