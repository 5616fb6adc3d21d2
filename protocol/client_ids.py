# SPDX-License-Identifier: Apache-2.0
"""The client ids in the requests that Groupkeeper itself sends."""

from typing import Final

CLI_CLIENT_ID: Final = "groupkeeper-cli"
"""The client id of the command `groupkeeper`."""
GATEWAY_CLIENT_ID: Final = "groupkeeper-gateway"
"""The client id in a gateway's own requests to nodes and brokers, as opposed to those of its clients."""
UPSTREAM_CLIENT_ID: Final = "groupkeeper"
"""The client id of connections to the cluster behind a gateway."""
