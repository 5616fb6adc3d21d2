# SPDX-License-Identifier: Apache-2.0
"""Sockets: connections that answer in order, and the listener that accepts them within limits."""
