# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper status`, which shows whether a running service is well, and what is wrong."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.errors import CommandError, exit_on_errors
from coordinator.cli.node_http import DEFAULT_NODE, fetch_json
from coordinator.cli.options import Json, Watch
from coordinator.cli.texts import format_count

if TYPE_CHECKING:
    from coordinator.overview.status import ServiceStatus


def status(
    node: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="The metrics.listen of a node, of any worker, or of a process of a gateway; each knows all.",
        ),
    ] = DEFAULT_NODE,
    json: Json = False,
    watch: Watch = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait.")] = 15.0,
) -> None:
    """Show whether a running service is well.

    Prints version, nodes, readiness, disk space, the cluster behind a gateway, and problems. Exit code 1 if there is a
    problem, or not everything is served.
    """
    with exit_on_errors():
        from coordinator.cli.render import print_json
        from coordinator.cli.watch_option import show_repeatedly
        from coordinator.overview.status import ServiceStatus

        def show() -> None:
            found = fetch_json(node, "/api/v1/status", ServiceStatus, timeout)
            if json:
                print_json([found])
            else:
                _print(found)
            if found.problems:
                raise CommandError(format_count(len(found.problems), "problem"))
            if not found.complete:
                raise CommandError("not everything is served yet")

        show_repeatedly(show, watch)


def _print(found: "ServiceStatus") -> None:
    from coordinator.cli.render import format_rows_vertically, print_table

    rows = [("VERSION", found.version or "-"), ("CLUSTER ID", found.cluster_id or "-")]
    rows += [("READY", _yes(found.ready)), ("ALL SERVED", _yes(found.complete))]
    if found.gateways is not None:
        rows.append(("GATEWAYS", f"{found.gateways['serving']} of {found.gateways['wanted']}"))
    if found.upstream is not None:
        brokers = found.upstream["brokers"].values()
        well = sum(each["error"] is None for each in brokers)
        rows.append(
            ("CLUSTER", f"{found.upstream['cluster_id'] or 'unknown'}, {well} of {len(brokers)} brokers")
        )
    names, values = zip(*rows, strict=True)
    sys.stdout.write(format_rows_vertically(names, [values]) + "\n")
    columns = ["NODE", "READY", "PARTITIONS", "LOADING", "GROUPS", "DISK FREE"]
    print_table(
        columns,
        [
            (n.node, _yes(n.ready), n.partitions, n.loading, n.groups, _free(n.disk_free, n.disk_size))
            for n in found.nodes
        ],
    )
    if found.problems:
        sys.stdout.write("\n")
        print_table(["PROBLEM"], [(problem,) for problem in found.problems])


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _free(free: int | None, size: int | None) -> str | None:
    return None if free is None or not size else f"{free / 2**30:.1f} GiB ({100 * free // size} %)"
