# SPDX-License-Identifier: Apache-2.0
"""Computes the offsets that a reset sets: strategies, times, partitions, and files of offsets."""
