# SPDX-License-Identifier: Apache-2.0
"""A client of a running gateway's coordinators over their private sockets: the LocalCoordinator of commands."""

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from coordinator.cli.cluster.client import refusals_as_command_errors
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.error_texts import describe_timeout, explain_error
from coordinator.cli.cluster.security import Security
from coordinator.cli.errors import CommandError
from coordinator.cluster_requests.groups import find_coordinators, list_groups
from coordinator.cluster_requests.model import Offsets
from coordinator.cluster_requests.offsets import fetch_offsets
from coordinator.cluster_requests.retrying import (
    RefusedByCluster,
    RetryLater,
    call_with_retries,
    raise_for_code,
)
from coordinator.config.values import Address
from coordinator.runtime.sockets import PRIVATE_DIRECTORY, private_socket_path
from coordinator.upstream.adopt_group_client import (
    build_adopt_request,
    get_marker_from_response,
    parse_store_result,
)
from coordinator.upstream.adoption import (
    FetchedGroupOffsets,
    GiveBackReadiness,
    GroupRemovalOutcome,
    LocalOwnershipState,
    StoreAttemptOutcome,
    make_adoption_topic_structs,
)
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from protocol.proxy_header import ProxyHeader, encode_proxy_header

T = TypeVar("T")

_ANSWERS: Final = {
    ErrorCode.NONE: GroupRemovalOutcome.GONE,
    ErrorCode.OFFSET_OUT_OF_RANGE: GroupRemovalOutcome.CHANGED,
    ErrorCode.NON_EMPTY_GROUP: GroupRemovalOutcome.LIVE,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupRemovalOutcome.UNKNOWN,
}
_LEAVING: Final = {
    ErrorCode.NONE: GiveBackReadiness.READY,
    ErrorCode.NON_EMPTY_GROUP: GiveBackReadiness.LIVE,
    ErrorCode.GROUP_ID_NOT_FOUND: GiveBackReadiness.UNKNOWN,
}


class PrivateConnection(NodeConnection):
    """A connection to a node's private socket; its first bytes are a header that names no client."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        super().__init__(Address(str(path), 0), lambda: timeout_s)

    def _open(self, timeout_s: float, _security: Security) -> socket.socket:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(timeout_s)
            opened.connect(str(self._path))
            opened.sendall(encode_proxy_header(ProxyHeader()))
        except BaseException:
            opened.close()
            raise
        return opened

    @property
    def name(self) -> str:
        """The node's name in errors."""
        return str(self._path)


class PrivateNodes:
    """The nodes of one data directory; a request that takes more than `timeout_s` for one group raises CommandError."""

    def __init__(self, data_dir: Path, timeout_s: float) -> None:
        """Begin with the nodes whose sockets lie in `data_dir`; no connection is opened yet."""
        self._data_dir = data_dir
        self._timeout_s = timeout_s
        self._connections: dict[Path, PrivateConnection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def list_groups(self) -> list[GroupId]:
        """Return all groups that the nodes have. Raises CommandError if one node does not list its groups."""
        found: set[GroupId] = set()
        for path in self._sockets():
            doing = f"listing the groups of {path}"
            try:
                with refusals_as_command_errors():
                    listed = self._connection(path).ask(list_groups(doing))
            except RetryLater as answer:
                raise CommandError(f"{doing}: {explain_error(answer.code)}") from None
            found.update(each.group for each in listed)
        return sorted(found)

    # --- LocalCoordinator ---

    async def fetch_local_ownership_marker(self, group: GroupId) -> LocalOwnershipState:
        """Return the ownership marker of the group here."""
        return get_marker_from_response(await self._adopt(group, None))

    async def fetch_give_back_readiness(self, group: GroupId) -> GiveBackReadiness:
        """Return whether the group could go to the cluster now."""
        return await self._leaving(group, closes=False)

    async def close_group_to_clients(self, group: GroupId) -> GiveBackReadiness:
        """If the group could go to the cluster now, close it to clients for a while; return its readiness."""
        return await self._leaving(group, closes=True)

    async def reopen_group(self, group: GroupId) -> None:
        """Let clients change the group again, if its coordinator can be reached now."""
        from coordinator.api.private.close_group import CloseGroupRequest, CloseGroupStep

        make: Any = CloseGroupRequest
        with suppress(CommandError, RetryLater, RefusedByCluster):
            self._coordinator(group).call(
                ApiKey.CLOSE_GROUP, 0, make(group_id=group, step=CloseGroupStep.REOPEN)
            )

    async def _leaving(self, group: GroupId, *, closes: bool) -> GiveBackReadiness:
        from coordinator.api.private.close_group import CloseGroupRequest, CloseGroupStep

        make: Any = CloseGroupRequest
        request = make(group_id=group, step=CloseGroupStep.CLOSE if closes else CloseGroupStep.ASK)

        def ask(connection: NodeConnection) -> GiveBackReadiness:
            code = connection.call(ApiKey.CLOSE_GROUP, 0, request).error_code
            if code not in _LEAVING:
                raise_for_code(code, None, f"asking whether group {group} could be given back")
            return _LEAVING[ErrorCode(code)]

        return await self._ask(group, ask)

    async def store_adopted_offsets(
        self, group: GroupId, reading: FetchedGroupOffsets
    ) -> StoreAttemptOutcome:
        """Store the data read from the cluster, unless the group is ours already or the data is too old."""
        stored = parse_store_result(await self._adopt(group, reading), reading)
        assert stored is not None, "other errors have been raised"
        return stored

    async def fetch_all_offsets(self, group: GroupId) -> Offsets:
        """Return all offsets that the group has here."""

        def ask(connection: NodeConnection) -> Offsets:
            (found,) = connection.ask(fetch_offsets([group])).values()
            raise_for_code(found.error_code, None, f"reading the offsets of group {group} here")
            return found.offsets

        return await self._ask(group, ask)

    async def remove_given_back_group(self, group: GroupId, offsets: Offsets) -> GroupRemovalOutcome:
        """Remove the group's marker and offsets, if its offsets are these."""
        from coordinator.api.private.give_back_group import GiveBackGroupRequest

        make: Any = GiveBackGroupRequest
        kind = make.GivenTopic
        request = make(
            group_id=group, offsets=list(make_adoption_topic_structs(offsets, kind, kind.GivenPartition))
        )

        def ask(connection: NodeConnection) -> GroupRemovalOutcome:
            code = connection.call(ApiKey.GIVE_BACK_GROUP, 0, request).error_code
            if code not in _ANSWERS:
                raise_for_code(code, None, f"giving group {group} back")
            return _ANSWERS[ErrorCode(code)]

        return await self._ask(group, ask)

    async def _adopt(self, group: GroupId, reading: FetchedGroupOffsets | None) -> Any:
        from coordinator.api.private.adopt_group import AdoptGroupRequest

        request = build_adopt_request(AdoptGroupRequest, group, reading)

        def ask(connection: NodeConnection) -> Any:
            answer = connection.call(ApiKey.ADOPT_GROUP, 0, request)
            if answer.error_code != ErrorCode.FENCED_LEADER_EPOCH:
                raise_for_code(answer.error_code, None, f"adopting group {group}")
            return answer

        return await self._ask(group, ask)

    # --- the coordinator of a group ---

    async def _ask(self, group: GroupId, attempt: Callable[[NodeConnection], T]) -> T:
        """Ask the group's coordinator, and again while it is not ready or moves."""

        async def ask() -> T:
            return attempt(self._coordinator(group))

        with refusals_as_command_errors():
            try:
                return await call_with_retries(ask, time.monotonic, asyncio.sleep, self._timeout_s)
            except RetryLater as answer:
                last = RetryLater(f"the coordinator of group {group} here", answer.code)
                raise CommandError(describe_timeout(last, self._timeout_s)) from None

    def _coordinator(self, group: GroupId) -> NodeConnection:
        (found,) = self._any().ask(find_coordinators([group]))
        raise_for_code(found.error_code, None, f"finding the coordinator of group {group} here")
        return self._connection(private_socket_path(self._data_dir, found.node_id))

    def _any(self) -> NodeConnection:
        errors = []
        for path in self._sockets():
            try:
                return self._connection(path)
            except CommandError as error:
                errors.append(error)
        raise errors[0]

    def _sockets(self) -> list[Path]:
        found = sorted((self._data_dir / PRIVATE_DIRECTORY).glob("*.sock"))
        if not found:
            raise CommandError(f"no gateway serves {self._data_dir}: it has no sockets there")
        return found

    def _connection(self, path: Path) -> PrivateConnection:
        if path not in self._connections:
            self._connections[path] = PrivateConnection(path, self._timeout_s)
        return self._connections[path]
