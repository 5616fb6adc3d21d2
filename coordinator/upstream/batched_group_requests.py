# SPDX-License-Identifier: Apache-2.0
"""Requests about many groups at once: one to each broker that coordinates some of them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator.cluster_requests.request import ClusterRequest, get_versions, return_response
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.errors import Unreachable, UpstreamError, UpstreamLacksApiVersion, UpstreamTimeout
from coordinator.upstream.topics import UpstreamTopicsReader
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ErrorCode

TopicIds: TypeAlias = Mapping[str, bytes]
"""The ids of all topics that the gateway's user may describe, by name."""
Build: TypeAlias = Callable[[Sequence[str], int, TopicIds | None], Any]
"""Returns the request for groups, a version, and topic ids (if the version has names but the client's has ids)."""

TOPIC_IDS_FROM: Final = 10
"""The first version of OffsetFetch in which topics have ids instead of names."""


class GroupsResponseOrError(NamedTuple):
    """A broker's response about some groups, or the error in its place."""

    groups: Sequence[str]
    answer: UpstreamResponse | ErrorCode | UpstreamError
    topic_ids: TopicIds | None = None
    """The ids of topics, if the broker names topics and the client's version has ids."""
    node_id: int | None = None
    """The broker that was asked."""


class BatchedGroupRequester:
    """Sends requests to groups' coordinators at the cluster, in a client's version or an older one of the broker's."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        self._cluster = cluster
        self._topics = UpstreamTopicsReader(cluster)

    async def send_to_coordinators(
        self, api: ApiKey, version: int, groups: Iterable[str], build: Build
    ) -> list[GroupsResponseOrError]:
        """Send each coordinator a request about its groups, all at once. Raises nothing: errors are in the result.

        If a coordinator cannot be reached the error is COORDINATOR_NOT_AVAILABLE: call `forget_coordinators` and retry.
        """
        names = list(groups)
        try:
            found, errors = await self._cluster.look_up_coordinators(names)
        except UpstreamError as error:
            return [GroupsResponseOrError(names, error)]
        refused: dict[ErrorCode, list[str]] = {}
        by_coordinator: dict[int, list[str]] = {}
        for name in names:
            if name in found:
                by_coordinator.setdefault(found[name], []).append(name)
            else:
                code = errors.get(name, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                refused.setdefault(code, []).append(name)
        answers = await asyncio.gather(
            *(self._ask_at(node_id, api, version, some, build) for node_id, some in by_coordinator.items())
        )
        return [*answers, *(GroupsResponseOrError(some, code) for code, some in refused.items())]

    def forget_coordinators(self, groups: Iterable[str]) -> None:
        """Forget the coordinators of these groups, so that the next request looks them up again."""
        for group in groups:
            self._cluster.forget_coordinator(group)

    async def _ask_at(
        self, node_id: int, api: ApiKey, version: int, groups: Sequence[str], build: Build
    ) -> GroupsResponseOrError:
        try:
            return await self._ask_in_versions(node_id, api, version, groups, build)
        except UpstreamError as error:
            if isinstance(error, Unreachable) and not isinstance(error, UpstreamTimeout):
                return GroupsResponseOrError(groups, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return GroupsResponseOrError(groups, error)

    async def _ask_in_versions(
        self, node_id: int, api: ApiKey, version: int, groups: Sequence[str], build: Build
    ) -> GroupsResponseOrError:
        has_ids = api is ApiKey.OFFSET_FETCH and version >= TOPIC_IDS_FROM
        supported = get_versions(api)
        oldest = version if has_ids else min(version, supported.min)

        def question(versions: VersionRange, ids: TopicIds | None) -> ClusterRequest[Any]:
            return ClusterRequest(api, versions, lambda chosen: build(groups, chosen, ids), return_response)

        try:
            asked = question(VersionRange(oldest, version), None)
            return GroupsResponseOrError(
                groups, await self._cluster.send_request(asked, node_id=node_id), node_id=node_id
            )
        except UpstreamLacksApiVersion:
            if not has_ids:
                raise
        ids = {name: topic.topic_id for name, topic in (await self._topics.fetch_all_topics()).topics.items()}
        asked = question(supported, ids)
        return GroupsResponseOrError(
            groups, await self._cluster.send_request(asked, node_id=node_id), ids, node_id
        )
