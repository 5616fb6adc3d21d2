# SPDX-License-Identifier: Apache-2.0
"""What the users of the model cluster may do, and might do when."""

from collections import defaultdict
from math import inf
from typing import Final, NamedTuple

SUPER_USER: Final = "gateway"
"""The gateway's own user, who may do everything."""
IMPLIED: Final = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}
"""Whoever may do one of these may do that, too (AclAuthorizer)."""


class Permit(NamedTuple):
    """An operation on a group, a topic, or the cluster."""

    operation: str
    resource: str
    name: str


class Permits:
    """The permissions of all users, with their past."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, Permit], list[tuple[float, float]]] = defaultdict(list)

    def allow(self, user: str, permit: Permit, now_s: float) -> None:
        """Give a permission."""
        times = self._times[user, permit]
        if not times or times[-1][1] != inf:
            times.append((now_s, inf))

    def revoke(self, user: str, permit: Permit, now_s: float) -> None:
        """Take a permission away."""
        times = self._times[user, permit]
        if times and times[-1][1] == inf:
            times[-1] = (times[-1][0], now_s)

    def has(self, user: str, permit: Permit, now_s: float) -> bool:
        """Whether the user may do this now."""
        return self.had(user, permit, now_s, now_s)

    def had(self, user: str, permit: Permit, from_s: float, to_s: float) -> bool:
        """Whether the user might do this at some moment of that time."""
        return user == SUPER_USER or any(
            began <= to_s and ended >= from_s
            for each in _that_allow(permit)
            for began, ended in self._times.get((user, each), ())
        )

    def had_all_along(self, user: str, permit: Permit, from_s: float, to_s: float) -> bool:
        """Whether the user might do this in all of that time, by one permission."""
        return user == SUPER_USER or any(
            began <= from_s and ended >= to_s
            for each in _that_allow(permit)
            for began, ended in self._times.get((user, each), ())
        )


def _that_allow(permit: Permit) -> list[Permit]:
    operations = (permit.operation, *IMPLIED.get(permit.operation, ()))
    return [permit._replace(operation=each) for each in operations]
