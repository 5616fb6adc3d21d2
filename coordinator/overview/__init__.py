# SPDX-License-Identifier: Apache-2.0
"""The view of groups that operators get over HTTP; nothing here changes a group."""
