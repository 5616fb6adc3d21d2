# SPDX-License-Identifier: Apache-2.0
"""The `topics` commands, joined in `app`."""
