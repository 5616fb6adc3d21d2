# SPDX-License-Identifier: Apache-2.0
"""Apis that only our own processes ask: gateways, and commands on the same machine, over private sockets."""
