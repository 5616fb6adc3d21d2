# SPDX-License-Identifier: Apache-2.0
"""The base of a node: clocks, timers, threads, the scheduler, ids of members, signals."""
