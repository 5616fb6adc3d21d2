# SPDX-License-Identifier: Apache-2.0
"""The HTTP interface for operators: metrics, health and readiness."""
