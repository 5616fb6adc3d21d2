# SPDX-License-Identifier: Apache-2.0
"""The error of everything that keeps a node from starting."""


class CannotStart(Exception):
    """The node cannot start; the message is one line for the person who starts it."""
