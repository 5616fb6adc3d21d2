# SPDX-License-Identifier: Apache-2.0
"""The audit for people and machines: HTML, Markdown, JSON, and text for Prometheus."""
