# SPDX-License-Identifier: Apache-2.0
"""Every metric, described once: what /metrics shows of it and what docs/metrics.md says come from here."""
