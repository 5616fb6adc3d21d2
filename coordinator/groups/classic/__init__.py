# SPDX-License-Identifier: Apache-2.0
"""Membership of the classic protocol: who is in a group, its generations, and who is assigned what."""
