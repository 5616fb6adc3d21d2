# SPDX-License-Identifier: Apache-2.0
"""The service: groups (without I/O), the shards that hold them, the node around them, and the apis."""
