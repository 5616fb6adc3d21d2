# SPDX-License-Identifier: Apache-2.0
"""The log compared with something else: a running cluster, and its own compacted copy."""
