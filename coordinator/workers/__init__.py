# SPDX-License-Identifier: Apache-2.0
"""Several nodes on one host: a supervisor that says who leads what, and the workers that do.

`assignment` decides and does no I/O; `supervisor` carries out, in one process; `worker` is the other ones.
"""
