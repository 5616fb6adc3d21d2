# SPDX-License-Identifier: Apache-2.0
"""A gateway and its nodes on simulated time, before a model of a cluster."""
