# SPDX-License-Identifier: Apache-2.0
"""Whole nodes on simulated time, disks and networks, with clients that speak real frames; one seed decides everything.

`python -m tests.simulation` runs fresh seeds, one seed again, or mutants of the code (see `__main__`).
"""
