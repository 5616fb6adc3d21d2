# SPDX-License-Identifier: Apache-2.0
"""The `groups` commands: a module for each, joined in `app`."""
