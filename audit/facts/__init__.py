# SPDX-License-Identifier: Apache-2.0
"""The content of the log as small tables for the checks: planned here, read by audit.run."""
