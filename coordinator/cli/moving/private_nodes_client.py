# SPDX-License-Identifier: Apache-2.0
"""A client of a running gateway's coordinators over their private sockets: the LocalCoordinator of commands."""

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from coordinator.cli.cluster.client import refusals_as_command_errors
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.error_texts import describe_timeout
from coordinator.cli.cluster.security import Security
from coordinator.cli.errors import CommandError
from coordinator.cluster_requests.groups import find_coordinators, list_groups
from coordinator.cluster_requests.model import Offsets
from coordinator.cluster_requests.offsets import fetch_offsets_of_group
from coordinator.cluster_requests.request import ClusterRequest
from coordinator.cluster_requests.retrying import (
    RefusedByCluster,
    RetryLater,
    call_with_retries,
    raise_for_code,
)
from coordinator.config.values import Address
from coordinator.migration.model import ClusterReading, Ownership
from coordinator.migration.private_requests import (
    CloseGroupStep,
    adopt,
    close_group,
    find_ownership,
    give_back_group,
)
from coordinator.runtime.sockets import PRIVATE_DIRECTORY, private_socket_path
from protocol.apis import PRIVATE_FROM, ApiKey, VersionRange
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from protocol.proxy_header import ProxyHeader, encode_proxy_header

T = TypeVar("T")


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

    def choose_version(self, api: ApiKey, known: VersionRange) -> int:
        """As a NodeConnection does; no list of versions has the private apis, which have one."""
        return known.max if api >= PRIVATE_FROM else super().choose_version(api, known)


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

    async def list_groups(self) -> list[GroupId]:
        """Return all groups that the nodes have. Raises CommandError if one node does not list its groups."""
        found: set[GroupId] = set()
        for path in self._sockets():
            request = list_groups(f"listing the groups of {path}")
            listed = await self._repeat(partial(self._connection, path), request, str(path))
            found.update(each.group for each in listed)
        return sorted(found)

    # --- LocalCoordinator ---

    async def find_ownership(self, group: GroupId) -> Ownership:
        """Return whether the group was taken over here."""
        return await self._ask(group, find_ownership(group))

    async def adopt(self, group: GroupId, reading: ClusterReading) -> Ownership:
        """Store the data read from the cluster, unless the group is ours already or the data is too old."""
        return await self._ask(group, adopt(group, reading))

    async def check_give_back(self, group: GroupId) -> ErrorCode:
        """Return NONE if the group could go to the cluster now, else why not."""
        return await self._ask(group, close_group(group, CloseGroupStep.ASK))

    async def close_for_give_back(self, group: GroupId) -> ErrorCode:
        """If the group could go to the cluster now, close it to clients for a while; return NONE, or why it cannot."""
        return await self._ask(group, close_group(group, CloseGroupStep.CLOSE))

    async def reopen_group(self, group: GroupId) -> None:
        """Let clients change the group again, if its coordinator can be reached now."""
        with suppress(CommandError, RetryLater, RefusedByCluster):
            self._coordinator(group).ask(close_group(group, CloseGroupStep.REOPEN))

    async def fetch_all_offsets(self, group: GroupId) -> Offsets:
        """Return all offsets that the group has here."""
        doing = f"reading the offsets of group {group} here"
        return await self._ask(group, fetch_offsets_of_group(group, doing))

    async def remove_group_if_unchanged(self, group: GroupId, offsets: Offsets) -> ErrorCode:
        """Remove the group's mark and offsets, if its offsets are these."""
        return await self._ask(group, give_back_group(group, offsets))

    # --- the coordinator of a group ---

    async def _ask(self, group: GroupId, request: ClusterRequest[T]) -> T:
        """Ask the group's coordinator, and again while it is not ready or moves."""
        name = f"the coordinator of group {group} here"
        return await self._repeat(partial(self._coordinator, group), request, name)

    async def _repeat(self, find: Callable[[], NodeConnection], request: ClusterRequest[T], name: str) -> T:
        """Ask the node that `find` returns, and again while it is not ready; errors have its `name`."""

        async def ask() -> T:
            return find().ask(request)

        with refusals_as_command_errors():
            try:
                return await call_with_retries(ask, time.monotonic, asyncio.sleep, self._timeout_s)
            except RetryLater as answer:
                last = RetryLater(name, answer.code)
                raise CommandError(describe_timeout(last, self._timeout_s)) from None

    def _coordinator(self, group: GroupId) -> NodeConnection:
        (found,) = self.connect().ask(find_coordinators([group]))
        raise_for_code(found.error_code, None, f"finding the coordinator of group {group} here")
        return self._connection(private_socket_path(self._data_dir, found.node_id))

    def connect(self) -> NodeConnection:
        """Return a connection to some node. Raises CommandError if there is none."""
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
        known = self._connections.get(path)
        if known is None or known.is_broken:
            if known is not None:
                known.close()
            known = self._connections[path] = PrivateConnection(path, self._timeout_s)
        return known
