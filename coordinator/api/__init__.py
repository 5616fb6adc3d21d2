# SPDX-License-Identifier: Apache-2.0
"""One module for each api of Kafka's protocol; `table` maps each request to the api that handles it."""
