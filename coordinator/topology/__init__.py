# SPDX-License-Identifier: Apache-2.0
"""Who leads what, as clients see it: the nodes, their partitions and where a topic ends."""
