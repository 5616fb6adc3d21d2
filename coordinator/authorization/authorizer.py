# SPDX-License-Identifier: Apache-2.0
"""The interface that decides what a client may do, and the authorizer that allows everything."""

from collections.abc import Collection
from typing import Final, Protocol

from coordinator.authorization.permissions import NOT_ASKED, SUPPORTED, Decisions, Permission, ResourceType
from protocol.errors import ErrorCode


class Authorizer(Protocol):
    """Decides on the permissions of one client, or of all clients alike."""

    def decisions_if_all_known(self, permissions: Collection[Permission]) -> Decisions | None:
        """Return the decisions, or None if one of them has to be asked for."""

    async def fetch_decisions(self, permissions: Collection[Permission]) -> Decisions:
        """Return the decisions, including those that have to be asked for."""


class AllowAll:
    """An authorizer that allows everything, for a node that has no permissions of its own."""

    def decisions_if_all_known(self, permissions: Collection[Permission]) -> Decisions:
        """Return a decision that allows each permission."""
        return dict.fromkeys(permissions, ErrorCode.NONE)

    async def fetch_decisions(self, permissions: Collection[Permission]) -> Decisions:
        """Return a decision that allows each permission."""
        return self.decisions_if_all_known(permissions)


ALLOW_ALL: Final = AllowAll()


def authorized_operations(
    authorizer: Authorizer, resource: ResourceType, name: str, *, asked: bool
) -> set[int]:
    """Return the codes of the operations that the client may do with a resource (KIP-430), or NOT_ASKED if not wanted.

    An operation on which there is no decision yet is left out.
    """
    if not asked:
        return NOT_ASKED
    permissions = [Permission(resource, operation, name) for operation in SUPPORTED[resource]]
    decisions = authorizer.decisions_if_all_known(permissions) or {}
    return {int(each.operation) for each in permissions if decisions.get(each) is ErrorCode.NONE}
