# SPDX-License-Identifier: Apache-2.0
"""The reports of an audit, for people and machines: HTML, Markdown, JSON, and text for Prometheus."""
