# SPDX-License-Identifier: Apache-2.0
"""`make demo`: what Groupkeeper is for, shown with real clients: shared partitions, a takeover, a crash.

`story` is what happens and what must hold, `screen` how it is told, `group` what the coordinator says when it is
asked, `member` a consumer seen from here, `consumer` that consumer's process.
"""
