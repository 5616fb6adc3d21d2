# SPDX-License-Identifier: Apache-2.0
"""Which kind a group has at the cluster: who is asked what, of brokers old and new; with a cluster that is played."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from coordinator.cluster_requests.model import ClusterGroupState
from coordinator.cluster_requests.request import OPTIONAL, ClusterRequest, read_at_once
from coordinator.config import Address
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import UpstreamError, UpstreamLacksApiVersion, UpstreamRequestRefused
from coordinator.upstream.groups import UpstreamGroups
from protocol.apis import ApiKey, VersionRange
from protocol.consumer_group_messages import ConsumerGroupDescribeResponse
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeGroupsResponse
from protocol.newtypes import GroupId
from protocol.streams_and_share_groups import ShareGroupDescribeResponse, StreamsGroupDescribeResponse
from tests.upstream.test_odd_clusters import read

ADDRESS: Final = Address("127.0.0.1", 1)
GROUP: Final = GroupId("g")
RESPONSES: Final[dict[ApiKey, Any]] = {
    ApiKey.DESCRIBE_GROUPS: DescribeGroupsResponse,
    ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeResponse,
    ApiKey.STREAMS_GROUP_DESCRIBE: StreamsGroupDescribeResponse,
    ApiKey.SHARE_GROUP_DESCRIBE: ShareGroupDescribeResponse,
}
KINDS: Final = dict(zip(("classic", "consumer", "streams", "share"), RESPONSES, strict=True))


class Played(UpstreamCluster):
    """A coordinator: what it says of the group to each api, NOT_FOUND of what a test says nothing about."""

    def __init__(self, said: dict[ApiKey, Sequence[ErrorCode | ClusterGroupState | UpstreamError]]) -> None:
        super().__init__(UpstreamConfig((ADDRESS,)), read=read)
        self._said = {api: list(answers) for api, answers in said.items()}
        self.asked: list[ApiKey] = []

    async def call_coordinator_once(self, group: str, question: ClusterRequest[Any]) -> Any:
        """The next answer to this api."""
        assert question.build(0).__class__.__name__.startswith(RESPONSES[question.api].name[:-8])
        self.asked.append(question.api)
        answers = self._said.get(question.api)
        answer = answers.pop(0) if answers else ErrorCode.GROUP_ID_NOT_FOUND
        if isinstance(answer, UpstreamError):
            raise answer
        kind = RESPONSES[question.api].DescribedGroup
        if isinstance(answer, ErrorCode):
            found = kind(error_code=answer, group_id=group, members=[])
            return read_at_once(question.read, RESPONSES[question.api](groups=[found]))
        members = [None] * answer.members
        described = kind(error_code=0, group_id=group, group_state=answer.state, members=members)
        return read_at_once(question.read, RESPONSES[question.api](groups=[described]))


def too_old(api: ApiKey, offered: VersionRange | None = None) -> UpstreamLacksApiVersion:
    return UpstreamLacksApiVersion(ADDRESS, api, offered, OPTIONAL[api])


@pytest.mark.parametrize("kind", KINDS)
async def test_the_kinds_are_asked_about_one_after_the_other_until_one_is_it(kind: str) -> None:
    state = ClusterGroupState(kind, "Stable", 2)
    cluster = Played({KINDS[kind]: [state]})
    assert await UpstreamGroups(cluster).fetch_group_state(GROUP) == state
    assert cluster.asked == list(RESPONSES)[: list(KINDS).index(kind) + 1]


@pytest.mark.parametrize("refusal", ["an older broker", "switched off", "no such group"])
async def test_a_group_that_no_kind_is_known_of_is_nowhere(refusal: str) -> None:
    """Kafka 3.0 has none of the newer apis, and one whose features are off says UNSUPPORTED_VERSION."""
    answers: dict[str, Any] = {
        "an older broker": too_old,
        "switched off": lambda _: ErrorCode.UNSUPPORTED_VERSION,
        "no such group": lambda _: ErrorCode.GROUP_ID_NOT_FOUND,
    }
    cluster = Played({api: [answers[refusal](api)] for api in list(RESPONSES)[1:]})
    assert await UpstreamGroups(cluster).fetch_group_state(GROUP) == ClusterGroupState.none()
    assert cluster.asked == list(RESPONSES), "one request of each kind"


@pytest.mark.parametrize("api", RESPONSES)
@pytest.mark.parametrize(
    "error", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
async def test_an_error_of_any_kind_is_no_absence(api: ApiKey, error: ErrorCode) -> None:
    with pytest.raises(UpstreamRequestRefused, match=error.name):
        await UpstreamGroups(Played({api: [error]})).fetch_group_state(GROUP)


@pytest.mark.parametrize("api", list(RESPONSES)[1:])
async def test_a_broker_that_has_given_up_our_version_does_not_say_that_there_is_no_such_group(
    api: ApiKey,
) -> None:
    with pytest.raises(UpstreamLacksApiVersion):
        await UpstreamGroups(Played({api: [too_old(api, VersionRange(9, 9))]})).fetch_group_state(GROUP)
    older = VersionRange(OPTIONAL[api].min - 1, OPTIONAL[api].min - 1)
    assert (
        await UpstreamGroups(Played({api: [too_old(api, older)]})).fetch_group_state(GROUP)
        == ClusterGroupState.none()
    )


@pytest.mark.parametrize("api", RESPONSES)
async def test_all_of_it_is_asked_again_where_a_coordinator_asks_for_patience(api: ApiKey) -> None:
    cluster = Played({api: [ErrorCode.NOT_COORDINATOR]})
    assert await UpstreamGroups(cluster).fetch_group_state(GROUP) == ClusterGroupState.none()
    asked = list(RESPONSES)
    assert cluster.asked == [*asked[: asked.index(api) + 1], *asked]
