# SPDX-License-Identifier: Apache-2.0
"""Times that have not come."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="future_time",
    severity="warning",
    about="A record says that it is from the future: a clock was wrong, and it will expire late.",
    query=sighted("future_time"),
)
