# SPDX-License-Identifier: Apache-2.0
"""Which permissions the requests of groups need, and what is left of a request whose client lacks some of them.

The package lies below the apis, imports only the protocol, and does no I/O: its caller brings the decisions.
"""
