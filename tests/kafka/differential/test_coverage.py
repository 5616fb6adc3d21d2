# SPDX-License-Identifier: Apache-2.0
"""What the scenarios cover, counted in Kafka's golden transcripts: a hole fails here and is named."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import pytest

from coordinator.groups.classic.state import GroupState
from protocol.apis import ApiKey
from protocol.kafka_python_messages import find_request_and_response_classes
from tests.kafka.differential.catalogue import all_scenarios
from tests.kafka.differential.goldens import KAFKA, load
from tests.kafka.differential.play import Transcript
from tests.kafka.differential.script import api_name
from tests.protocol.schemas import present
from tests.support.apis import SUPPORTED

SCENARIOS_MIN: Final = 250

REQUEST: Final = re.compile(r"[A-Z] > (\w+) v(-?\d+)(?: |$)")
ANSWER: Final = re.compile(r"[A-Z] < (\w+) v(-?\d+)(?: |$)")
BEGINNING: Final = re.compile(r"# an? (\w+) group")
REACHED: Final = re.compile(r"until .* is (\w+)")
# A value of a field: a text in quotes, bytes, the beginning of an array or of a struct, or a word.
_TEXT: Final = r'"(?:\\.|[^"\\])*"(?: \(\d+ characters, crc \w+\))?'
_BYTES: Final = r"""\d+ bytes \(crc \w+\)|b'(?:\\.|[^'\\])*'|b"[^"]*\""""
VALUE: Final = re.compile(rf"(\w+)=({_TEXT}|{_BYTES}|\[\]|\[|\{{|<[^>]*>|[^\s,\]}}]+)")
BLOCK: Final = re.compile(r"^ +(?:- )?(\w+):$", re.MULTILINE)
UNSAID: Final = "(not said)"
BY_NAME: Final = {api_name(api): api for api in SUPPORTED}

OF_GROUPS: Final = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.LIST_GROUPS,
)

FEWER_VALUES: Final[Mapping[tuple[ApiKey, str], str]] = {
    (ApiKey.FETCH, "cluster_id"): "tagged, of a controller's fetches",
    (ApiKey.FETCH, "replica_state"): "tagged, of a follower's fetches",
    (ApiKey.FETCH, "replica_epoch"): "tagged, of a follower's fetches",
    (ApiKey.FETCH, "replica_directory_id"): "tagged, of a controller's fetches",
    (ApiKey.FETCH, "high_watermark"): "tagged, of a follower's fetches",
    (ApiKey.PRODUCE, "transactional_id"): "there are no transactions",
}
"""Fields without an ordinary, a boundary and a wrong value, and why."""


@pytest.fixture(scope="module")
def transcripts() -> Mapping[str, Transcript]:
    """What Kafka answered in every scenario."""
    return load(KAFKA)


def test_there_are_many_scenarios(transcripts: Mapping[str, Transcript]) -> None:
    assert len(all_scenarios()) >= SCENARIOS_MIN
    assert {scenario.name for scenario in all_scenarios()} == transcripts.keys()


def test_every_version_of_every_api_is_asked_and_answered(transcripts: Mapping[str, Transcript]) -> None:
    everything = {
        (api_name(api), str(version))
        for api, versions in SUPPORTED.items()
        for version in range(versions.min, versions.max + 1)
    }
    for pattern in (REQUEST, ANSWER):
        seen = {
            match.groups()
            for lines in transcripts.values()
            for line in lines
            if (match := pattern.match(line))
        }

        assert everything - seen == set()


def test_every_state_is_reached_and_every_api_of_groups_asked_in_it(
    transcripts: Mapping[str, Transcript],
) -> None:
    asked = {step for lines in transcripts.values() for step in _asked_in_states(lines)}

    assert {state for state, _ in asked} == {state.value for state in GroupState}
    assert {(state.value, api_name(api)) for state in GroupState for api in OF_GROUPS} - asked == set()


def _asked_in_states(lines: Transcript) -> Iterator[tuple[str, str]]:
    """The group's state and the api, for each request before the first that could change that state."""
    state = None
    for line in lines:
        if line.startswith("# a deleted group"):
            state = GroupState.DEAD.value
        elif match := BEGINNING.match(line) or REACHED.match(line):
            state = match[1]
        elif (match := REQUEST.match(line)) and state is not None:
            yield state, match[1]
            if match[1] in ("JoinGroup", "SyncGroup", "LeaveGroup", "DeleteGroups"):
                state = None


def test_every_field_has_an_ordinary_a_boundary_and_a_wrong_value(
    transcripts: Mapping[str, Transcript],
) -> None:
    values = _values(transcripts)
    short = {}
    for api in SUPPORTED:
        for name, wanted in _fields(api).items():
            found = values[api_name(api)][name]
            if len(found) < wanted and (api, name) not in FEWER_VALUES:
                short[f"{api_name(api)}.{name}"] = sorted(found)

    assert short == {}


def test_every_reason_for_fewer_values_is_needed(transcripts: Mapping[str, Transcript]) -> None:
    values = _values(transcripts)

    for api, name in FEWER_VALUES:
        assert len(values[api_name(api)][name]) < _fields(api)[name], f"{api.name}.{name} has enough by now"


@cache
def _fields(api: ApiKey) -> dict[str, int]:
    """The fields of an api's requests in any version, and how many different values each is to have."""
    low, high = SUPPORTED[api]
    found: dict[str, int] = {}
    for version in range(low, high + 1):
        _collect(find_request_and_response_classes(api)[0]._struct, version, found)
    return found


def _collect(schema: Any, version: int, found: dict[str, int]) -> None:
    for field in present(schema, version):
        # Arrays: with something in them and with nothing; lengths that none can have are in scenarios/frames.py.
        found[field.name] = 2 if field.is_array() or field.is_struct() or field.type_str == "bool" else 3
        if field.is_struct_array():
            _collect(field.array_of, version, found)
        elif field.is_struct():
            _collect(field, version, found)


def _values(transcripts: Mapping[str, Transcript]) -> Mapping[str, Mapping[str, set[str]]]:
    """The values of each field of the requests of each api, as they are written."""
    values: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for lines in transcripts.values():
        for api, request in _requests(lines):
            said = [*VALUE.findall(request), *((name, "[") for name in BLOCK.findall(request))]
            for name, value in said:
                values[api][name].add(value)
            for name in _fields(BY_NAME[api]).keys() - {name for name, _ in said}:
                values[api][name].add(UNSAID)
    return values


def _requests(lines: Transcript) -> Iterator[tuple[str, str]]:
    """Each request of an api that is served: its name, and its text with the lines that go on with it."""
    api, text = "", ""
    for line in [*lines, ""]:
        if line.startswith(" "):
            text += "\n" + line
            continue
        if api in BY_NAME:
            yield api, text
        match = REQUEST.match(line)
        api, text = (match[1], line[match.end() :]) if match else ("", "")
