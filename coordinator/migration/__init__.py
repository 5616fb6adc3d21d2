# SPDX-License-Identifier: Apache-2.0
"""Groups that move between the Kafka cluster behind a gateway and this node: terms, order of steps, and ledger."""
