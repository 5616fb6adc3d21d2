# SPDX-License-Identifier: Apache-2.0
"""The GroupMetadataManager and its partitions: their groups, logs, loading and leadership."""
