# SPDX-License-Identifier: Apache-2.0
"""The model cluster answers as a real Kafka does, by the golden transcripts of the differential suite.

`tests/kafka/differential/test_kafka.py` holds those to a real Kafka. The scenarios are those of what the model has:
offsets, groups of one member, and coordinators.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import Scenario, all_scenarios
from tests.kafka.differential.goldens import KAFKA, load
from tests.kafka.differential.ordinary import TOPICS
from tests.kafka.differential.play import Transcript, play
from tests.kafka.differential.script import ServerUnderTest
from tests.simulation.gateway.model import OFFERED
from tests.simulation.gateway.served import served

pytestmark = [pytest.mark.process, pytest.mark.gate]

PLAYED: Final = frozenset(
    {
        "delete_groups.with_offsets",
        "describe_groups.a_group_of_offsets_only",
        "describe_groups.groups_that_do_not_exist",
        "describe_groups.several_groups",
        "find_coordinator.one_key",
        "find_coordinator.several_keys",
        "find_coordinator.transactions",
        "heartbeat.a_group_of_given_out_ids_only",
        "heartbeat.a_group_of_offsets_only",
        "join_group.a_reason",
        "join_group.an_id_that_was_given_out_can_only_join",
        "join_group.client_ids",
        "join_group.generations_go_on_after_everybody_has_left",
        "join_group.generations_start_again_after_a_deletion",
        "join_group.group_ids",
        "join_group.protocol_names",
        "leave_group.a_group_of_offsets_only",
        "list_groups.a_deleted_group",
        "offset_commit.from_outside_of_a_group",
        "offset_commit.group_ids",
        "offset_commit.leader_epochs",
        "offset_commit.metadata",
        "offset_commit.offsets_at_their_limits",
        "offset_commit.offsets_stay_while_members_come_and_go",
        "offset_commit.retention_times",
        "offset_commit.to_a_group_of_given_out_ids_only",
        "offset_commit.to_a_group_of_offsets_only",
        "offset_commit.topics_that_do_not_exist",
        "offset_commit.topics_that_do_not_exist_by_id",
        "offset_delete.groups_that_do_not_exist",
        "offset_delete.of_a_group_of_offsets_only",
        "offset_delete.of_members_that_are_no_consumers",
        "offset_delete.topics_and_partitions_that_do_not_exist",
        "offset_fetch.after_every_commit",
        "offset_fetch.everything",
        "offset_fetch.only_stable_offsets",
        "offset_fetch.several_groups",
        "offset_fetch.some_partitions",
        "offset_fetch.the_empty_group_id",
        "offset_fetch.topics_that_do_not_exist",
        "offset_fetch.topics_that_do_not_exist_by_id",
        "sync_group.a_lone_leader",
    }
)
"""The functions of these scenarios, each with all of its versions."""
SCENARIOS: Final = [each for each in all_scenarios() if each.name.split()[0] in PLAYED]
OF_GROUPS: Final = {
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.FIND_COORDINATOR,
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerUnderTest]:
    """The model, with the topics of all scenarios."""
    with served(TOPICS) as (bootstrap, model):
        server = ServerUnderTest(bootstrap, grace_s=0.0)
        server.topic_ids = {name: model.topics[name].topic_id for name in TOPICS}
        yield server


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Transcript]:
    """What Kafka answers."""
    return load(KAFKA)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_model_answers_as_kafka_does(
    scenario: Scenario, server: ServerUnderTest, golden: Mapping[str, Transcript]
) -> None:
    assert play(scenario, server) == golden[scenario.name]


def test_every_function_is_one_of_the_suite() -> None:
    assert {each.name.split()[0] for each in SCENARIOS} == PLAYED


@pytest.mark.parametrize("api", sorted(OF_GROUPS), ids=lambda api: api.name)
def test_each_api_of_groups_is_played(api: ApiKey, golden: Mapping[str, Transcript]) -> None:
    name = "".join(word.capitalize() for word in api.name.split("_"))
    lines = [line for each in SCENARIOS for line in golden[each.name]]
    assert api in OFFERED
    assert any(f"< {name} v" in line for line in lines)
