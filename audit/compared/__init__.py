# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the log with a running cluster, and with its own compacted copy."""

from typing import Final

QUOTED_CHARS_MAX: Final = 200
"""The number of characters of an offset's metadata that a message quotes: clients may store 4,096."""
