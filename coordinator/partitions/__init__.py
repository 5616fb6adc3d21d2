# SPDX-License-Identifier: Apache-2.0
"""GroupMetadataManager and what a partition of it needs: its groups, its log, loading, leadership."""
