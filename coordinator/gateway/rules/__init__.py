# SPDX-License-Identifier: Apache-2.0
"""Which rights the requests of groups need, a module for each api, and what is left of one that has some of them."""
