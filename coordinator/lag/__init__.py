# SPDX-License-Identifier: Apache-2.0
"""How far groups are behind the ends of their partitions, since when, and whether they get on with their work. Pure."""
