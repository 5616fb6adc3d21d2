# SPDX-License-Identifier: Apache-2.0
"""The topology as clients see it: the nodes, and the leaders of the partitions."""
