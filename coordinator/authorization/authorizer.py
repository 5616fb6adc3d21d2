# SPDX-License-Identifier: Apache-2.0
"""Who says what a client may do."""

from collections.abc import Collection
from typing import Final, Protocol

from coordinator.authorization.permissions import NOT_ASKED, SUPPORTED, Decisions, Permission, Resource
from protocol.errors import ErrorCode


class Authorizer(Protocol):
    """Decides over the permissions of one client, or of all alike."""

    def known(self, permissions: Collection[Permission]) -> Decisions | None:
        """The decisions; None where one of them has to be asked for."""

    async def check(self, permissions: Collection[Permission]) -> Decisions:
        """The decisions, those that have to be asked for, too."""


class AllowAll:
    """The authorizer of a node, which has no permissions of its own."""

    def known(self, permissions: Collection[Permission]) -> Decisions:
        """All is allowed."""
        return dict.fromkeys(permissions, ErrorCode.NONE)

    async def check(self, permissions: Collection[Permission]) -> Decisions:
        """All is allowed."""
        return self.known(permissions)


ALLOW_ALL: Final = AllowAll()


def authorized_operations(authorizer: Authorizer, resource: Resource, name: str, *, asked: bool) -> set[int]:
    """The codes of the operations that the client may do with a resource (KIP-430); NOT_ASKED if not wanted.

    An operation over which nothing is decided yet is left out.
    """
    if not asked:
        return NOT_ASKED
    permissions = [Permission(resource, operation, name) for operation in SUPPORTED[resource]]
    decisions = authorizer.known(permissions) or {}
    return {int(each.operation) for each in permissions if decisions.get(each) is ErrorCode.NONE}
