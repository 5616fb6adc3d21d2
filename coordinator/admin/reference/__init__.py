# SPDX-License-Identifier: Apache-2.0
"""The descriptions of all metrics, from which /metrics and docs/metrics.md are made."""
