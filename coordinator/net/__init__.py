# SPDX-License-Identifier: Apache-2.0
"""The sockets of a node: connections that answer in order, and the listener that accepts them within limits."""
