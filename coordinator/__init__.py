# SPDX-License-Identifier: Apache-2.0
"""The service: groups (pure), the shards that hold them, the shell around them, and the apis."""
