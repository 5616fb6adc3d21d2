# SPDX-License-Identifier: Apache-2.0
"""Committed offsets, whatever kind of group they belong to."""
