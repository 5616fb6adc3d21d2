# SPDX-License-Identifier: Apache-2.0
"""How often the garbage collector of a node's process looks, and at how much."""

from typing import Final

GC_THRESHOLDS: Final = (5_000, 1, 25_000)
"""A node allocates few cycles and many small objects that stay: with the default thresholds a full collection would
walk the whole cache of groups again and again. What the other two walk at a time, at most three times 5,000 objects,
takes some milliseconds; 50,000 have taken 22, in the middle of whatever the event loop was doing."""
