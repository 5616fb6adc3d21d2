# SPDX-License-Identifier: Apache-2.0
"""Apis that only our own processes call over private sockets: gateways, and commands on the same machine."""
