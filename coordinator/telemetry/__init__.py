# SPDX-License-Identifier: Apache-2.0
"""The counters and the log lines of the service."""
