# SPDX-License-Identifier: Apache-2.0
"""What a node runs on: clocks, timers, threads, the scheduler, ids of members, signals."""
