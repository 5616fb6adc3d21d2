# SPDX-License-Identifier: Apache-2.0
"""Asks the HTTP address of a running node (metrics.listen)."""

from typing import Final, TypeVar

from coordinator.cli.errors import EXIT_USAGE, CommandError

DEFAULT_NODE: Final = "127.0.0.1:9308"
T = TypeVar("T")


def fetch_json(node: str, path: str, kind: type[T], timeout_s: float) -> T:
    """Return the decoded answer to a GET request. Raises CommandError if there is none, or another one."""
    import http.client

    import msgspec

    from coordinator.config.values import Address

    try:
        address = Address.parse(node)
    except ValueError:
        raise CommandError(f"--node {node}: expected HOST:PORT", EXIT_USAGE) from None
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise CommandError(f"{node}: {answer.status} {body.decode('utf-8', 'replace').strip()}")
        return msgspec.json.decode(body, type=kind)
    except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"{node}: no response from a node's metrics.listen: {reason}") from error
    finally:
        connection.close()
