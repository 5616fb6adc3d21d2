# SPDX-License-Identifier: Apache-2.0
"""The log compared with something else: a running cluster, and its own compacted copy."""

from typing import Final

QUOTED_CHARS_MAX: Final = 200
"""How many characters of an offset's metadata a message quotes: clients may store 4,096."""
