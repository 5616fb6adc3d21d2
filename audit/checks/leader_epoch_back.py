# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that go back."""

from audit.checks.base import Check, by_file, said, sighted
from audit.facts import Facts


def _query(facts: Facts) -> str:
    message = said("leader epoch %s after %s", "first_epoch", "earlier_epoch")
    across = (
        f"select partition, file, position, 1L as count, {message} as message from ranges"
        " where first_epoch >= 0 and first_epoch < earlier_epoch"
    )
    return by_file(sighted("leader_epoch_back")(facts), across)


CHECK = Check(
    name="leader_epoch_back",
    severity="error",
    about="A former leader wrote after its successor: there were two leaders.",
    query=_query,
)
