# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper adopt` and `give-back`: groups come from the cluster behind a gateway, and return to it."""
