# SPDX-License-Identifier: Apache-2.0
"""One audit from beginning to end: the only package with threads, and with work next to Spark's."""
