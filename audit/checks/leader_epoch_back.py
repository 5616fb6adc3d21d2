# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that go back."""

from audit.checks.base import Check, said, sighted_or_between

CHECK = Check(
    name="leader_epoch_back",
    severity="error",
    about="A former leader wrote after its successor: there were two leaders.",
    query=lambda _: sighted_or_between(
        "leader_epoch_back",
        "first_epoch >= 0 and first_epoch < earlier_epoch",
        said("leader epoch %s after %s", "first_epoch", "earlier_epoch"),
    ),
)
