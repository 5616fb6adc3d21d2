# SPDX-License-Identifier: Apache-2.0
"""The journal of a node: one sync makes a flush of many partitions durable, and no loss of one goes unnoticed."""
