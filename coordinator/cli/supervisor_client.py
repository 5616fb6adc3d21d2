# SPDX-License-Identifier: Apache-2.0
"""Sends an operator's order to the supervisor of a data directory."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.cli.errors import CommandError

if TYPE_CHECKING:
    from coordinator.workers.operator_orders import Answer


class NoSupervisor(CommandError):
    """No supervisor runs on the data directory."""


def send_order_to_supervisor(data_dir: Path, order: Any) -> "Answer":
    """Send an order to the supervisor of a data directory and return its response.

    Raises NoSupervisor if none runs there, and CommandError if it refuses the order.
    """
    import msgspec

    from coordinator.workers.operator_orders import Answer, PathTooLong, socket_path
    from coordinator.workers.path_hooks import decode_path
    from protocol.framing import LENGTH_BYTES

    try:
        path = socket_path(data_dir)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            body = msgspec.msgpack.encode(order)
            connection.sendall(len(body).to_bytes(LENGTH_BYTES, "big") + body)
            with connection.makefile("rb") as stream:
                length = int.from_bytes(stream.read(LENGTH_BYTES), "big")
                answer = msgspec.msgpack.decode(stream.read(length), type=Answer, dec_hook=decode_path)
    except PathTooLong as error:
        raise CommandError(str(error)) from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise NoSupervisor(
            f"no supervisor responds in {data_dir}: nothing runs there, or only a single node (workers = 1), "
            "which leads all partitions itself"
        ) from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"no response from the supervisor of {data_dir}: {error}") from None
    if answer.refused is not None:
        raise CommandError(answer.refused)
    return answer
