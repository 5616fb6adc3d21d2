# SPDX-License-Identifier: Apache-2.0
"""The periodic and background jobs: expiry, counting, watching the loop and the limits."""
