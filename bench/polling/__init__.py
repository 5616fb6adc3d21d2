# SPDX-License-Identifier: Apache-2.0
"""Monitors that poll groups which are still at the cluster, through a gateway and directly.

`brokers` runs a cluster and counts what its brokers are asked, `fronting` the gateway before it; `monitor` polls, `cli`
measures and `tables` shows it. `watched` and `watched_gateway` are processes that note their turns.
"""
