# SPDX-License-Identifier: Apache-2.0
"""The committed offsets of groups of any kind."""
