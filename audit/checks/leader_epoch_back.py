# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that go back."""

from audit.checks.base import Check, between, by_file, said, sighted
from audit.facts import Facts


def _query(facts: Facts) -> str:
    message = said("leader epoch %s after %s", "first_epoch", "earlier_epoch")
    across = between("first_epoch >= 0 and first_epoch < earlier_epoch", message)
    return by_file(sighted("leader_epoch_back")(facts), across)


CHECK = Check(
    name="leader_epoch_back",
    severity="error",
    about="A former leader wrote after its successor: there were two leaders.",
    query=_query,
)
