# SPDX-License-Identifier: Apache-2.0
"""The work on a directory before it serves: recovery, checks, repair, and the settling of workers' journals."""
