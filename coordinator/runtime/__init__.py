# SPDX-License-Identifier: Apache-2.0
"""The shell around the pure groups: time, the disk, loading, and what runs by the clock."""
