# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper adopt` and `groupkeeper give-back`: groups come from the cluster behind a gateway, and return to it."""
