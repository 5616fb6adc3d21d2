# SPDX-License-Identifier: Apache-2.0
"""What runs by the clock or in the background: expiry, compaction, counting, watching the loop and the limits."""
