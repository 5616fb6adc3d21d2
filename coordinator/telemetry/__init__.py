# SPDX-License-Identifier: Apache-2.0
"""What the service says of itself: counters and log lines."""
