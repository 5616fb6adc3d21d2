# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper partitions list | move | drain`, which show and change which worker leads a partition."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.errors import CommandError, exit_on_errors
from coordinator.cli.supervisor_client import send_order_to_supervisor
from protocol.newtypes import Partition

if TYPE_CHECKING:
    from coordinator.workers.operator_orders import Answer

app = typer.Typer(
    help="Show and change which worker leads which partition.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DataDir = Annotated[Path, typer.Option(metavar="DIR", help="The data directory of the running supervisor.")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for completion.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

POLL_S = 0.02


@app.command("list")
def list_partitions(data_dir: DataDir = Path("data"), json: Json = False) -> None:
    """List the nodes, and the leader of each partition."""
    with exit_on_errors():
        from coordinator.cli import render
        from coordinator.workers.operator_orders import ListPartitions

        found = send_order_to_supervisor(data_dir, ListPartitions())
        if json:
            render.print_json([found])
        else:
            render.print_partitions(found)


@app.command()
def move(
    partition: Annotated[int, typer.Argument(metavar="PARTITION")],
    to: Annotated[int, typer.Option(metavar="NODE", help="The id of the node that will lead it.")],
    data_dir: DataDir = Path("data"),
    timeout: Timeout = 30.0,
) -> None:
    """Let another node lead a partition, and wait until it is served."""
    with exit_on_errors():
        from coordinator.workers.operator_orders import Move

        def arrived(answer: "Answer") -> bool:
            state = answer.partitions[partition]
            if state.state == "failed":
                raise CommandError(f"partition {partition} cannot be served: {state.reason}")
            return state.leader == to and state.state == "online"

        order = Move(Partition(partition), to)
        wait_for(
            data_dir,
            send_order_to_supervisor(data_dir, order),
            arrived,
            timeout,
            f"node {to} does not lead partition {partition} yet",
        )
        typer.echo(f"node {to} leads partition {partition}")


@app.command()
def drain(
    node: Annotated[int, typer.Argument(metavar="NODE")],
    data_dir: DataDir = Path("data"),
    timeout: Timeout = 60.0,
) -> None:
    """Move all partitions of a node to other nodes, and stop the node."""
    with exit_on_errors():
        from coordinator.workers.operator_orders import Drain

        def ended(answer: "Answer") -> bool:
            return all(state.node != node for state in answer.nodes)

        wait_for(
            data_dir,
            send_order_to_supervisor(data_dir, Drain(node)),
            ended,
            timeout,
            f"node {node} has not ended yet",
        )
        typer.echo(f"node {node} is drained and has ended")


def wait_for(
    data_dir: Path, answer: "Answer", condition: Callable[["Answer"], bool], timeout_s: float, missing: str
) -> None:
    """Ask the supervisor again until its response meets `condition`.

    Raises CommandError with the text `missing` after `timeout_s`.
    """
    from coordinator.workers.operator_orders import ListPartitions

    deadline = time.monotonic() + timeout_s
    while not condition(answer):
        if time.monotonic() > deadline:
            raise CommandError(f"{missing} after {timeout_s:g} s; the operation continues")
        time.sleep(POLL_S)
        answer = send_order_to_supervisor(data_dir, ListPartitions())
