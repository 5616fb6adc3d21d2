# SPDX-License-Identifier: Apache-2.0
"""Questions between the processes of one host, and to the cluster, which the supervisor passes on.

A process asks by `node_questions`, `question_relay` in the supervisor passes the question on, and `answers` answers it.
`all_nodes_overview`, `committed_ends` and `ends_of_other_nodes` are what is asked of nodes, `cluster_end_requests` and
`cluster_partition_ends` what is asked of the cluster.
"""
