# SPDX-License-Identifier: Apache-2.0
"""One audit from beginning to end: the only place with threads, and what runs beside Spark."""
