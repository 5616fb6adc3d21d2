# SPDX-License-Identifier: Apache-2.0
"""The log of a node: the interfaces by which a node uses it, and the implementation in files."""
