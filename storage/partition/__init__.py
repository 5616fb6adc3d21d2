# SPDX-License-Identifier: Apache-2.0
"""The log of one partition: segments with their indexes and leader epochs, and the swap of compacted segments."""
