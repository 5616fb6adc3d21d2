# SPDX-License-Identifier: Apache-2.0
"""Attacks on a node by clients that ask for as much as they can, and what somebody else's heartbeat feels of it."""
