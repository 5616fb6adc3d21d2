# SPDX-License-Identifier: Apache-2.0
"""Several nodes on one host: a supervisor that assigns partitions, and the workers that lead them.

`assignment` decides without I/O; `supervisor` carries the decisions out; each `worker` runs in its own process.
"""
