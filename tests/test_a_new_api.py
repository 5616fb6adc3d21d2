# SPDX-License-Identifier: Apache-2.0
"""Adding an api is a module and its schema: planted in a copy of the sources, it is offered and served."""

import json
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsRequest

from bench.ports import free_ports
from tests.support.processes import ServerProcess, environment
from tests.support.raw import RawConnection
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
KEY = 77
"""ShareGroupDescribe."""
PACKAGES = ("coordinator", "protocol", "storage")

SCHEMAS: dict[str, dict[str, Any]] = {
    "ShareGroupDescribeRequest": {
        "type": "request",
        "fields": [{"name": "GroupIds", "type": "[]string", "versions": "0+"}],
    },
    "ShareGroupDescribeResponse": {
        "type": "response",
        "fields": [
            {"name": "ErrorCode", "type": "int16", "versions": "0+"},
            {
                "name": "Groups",
                "type": "[]DescribedGroup",
                "versions": "0+",
                "fields": [
                    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
                    {"name": "GroupId", "type": "string", "versions": "1+"},
                ],
            },
        ],
    },
}
"""Much simpler than Kafka's, of an api that kafka-python does not know."""

MODULE = '''
"""ShareGroupDescribe v0-v1, as it could be."""

from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListGroupsResponse, build_schema


class ShareGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    group_ids: list[str]


class ShareGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    DescribedGroup: Any
    error_code: int
    groups: list[Any]


def handle(
    node: Node, request: ShareGroupDescribeRequest, ctx: RequestContext
) -> ShareGroupDescribeResponse:
    """A response without errors for groups that begin with an a."""
    return _response(request, {True: ErrorCode.NONE, False: ErrorCode.GROUP_ID_NOT_FOUND}, ctx.api_version)


def error_response(
    request: ShareGroupDescribeRequest, error: ErrorCode, version: int
) -> ShareGroupDescribeResponse:
    """The error for every group."""
    return _response(request, {True: error, False: error}, version)


def _response(
    request: ShareGroupDescribeRequest, errors: dict[bool, ErrorCode], version: int
) -> ShareGroupDescribeResponse:
    kind = ShareGroupDescribeResponse.DescribedGroup
    groups = [
        kind(version=version, error_code=errors[group_id.startswith("a")], group_id=group_id)
        for group_id in request.group_ids
    ]
    make: Any = ShareGroupDescribeResponse
    response: ShareGroupDescribeResponse = make(version=version, error_code=0, groups=groups)
    return response


API: Final = Api(
    build_schema(ShareGroupDescribeRequest, ShareGroupDescribeResponse),
    versions=VersionRange(0, 1),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
    error_parts=("groups",),
)
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources with one more api: a module and two schemas are added, and nothing is changed."""
    tree = tmp_path / "tree"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, schema in SCHEMAS.items():
        whole = {"apiKey": KEY, "name": name, "validVersions": "0-1", "flexibleVersions": "1+", **schema}
        (tree / "protocol" / "schemas" / f"{name}.json").write_text(json.dumps(whole))
    (tree / "coordinator" / "api" / "share_group_describe.py").write_text(MODULE)
    return tree


@pytest.fixture
def port(tree: Path, tmp_path: Path) -> Iterator[int]:
    """Where a node made of these sources serves."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "coordinator.cli.main", "serve", "--listen", f"127.0.0.1:{port}"]
    process = ServerProcess(
        [*command, "--data-dir", str(tmp_path / "data"), "--metrics", ""],
        tmp_path / "log",
        env=environment({"PYTHONPATH": str(tree)}),
        cwd=tree,
    )
    wait_until(lambda: _accepts(port), what=lambda: f"a node that serves: {process.log_tail()}")
    yield port
    assert process.terminate() == 0


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ask(port: int, frame: bytes) -> bytes:
    """The answer to one request, without its length."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        with connection.makefile("rb") as answer:
            return answer.read(*struct.unpack(">i", answer.read(4)))


@pytest.mark.slow  # and needs the sources: the tests of what is installed leave it out
def test_a_module_and_a_schema_are_all_that_an_api_needs(port: int) -> None:
    with RawConnection(f"127.0.0.1:{port}") as connection:
        offered = connection.call(ApiVersionsRequest(), 0).api_keys
    assert [(each.min_version, each.max_version) for each in offered if each.api_key == KEY] == [(0, 1)]

    classic = struct.pack(">hhih", KEY, 0, 7, -1) + b"\0\0\0\2\0\2ab\0\1b"
    assert ask(port, classic) == b"\0\0\0\7\0\0\0\0\0\2\0\0\0\x45"
    flexible = struct.pack(">hhih", KEY, 1, 8, -1) + b"\0\3\3ab\2b\0"
    assert ask(port, flexible) == (b"\0\0\0\x08\0\0\0\3\0\0\3ab\0\0\x45\2b\0\0")


def mypy(tree: Path) -> str:
    """What mypy says of the planted module."""
    shutil.copy(ROOT / "pyproject.toml", tree)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache")]
    module = "coordinator/api/share_group_describe.py"
    return subprocess.run([*command, module], cwd=tree, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_a_handler_that_answers_with_another_api_s_response_is_refused_by_mypy(tree: Path) -> None:
    assert "Success" in mypy(tree)
    module = tree / "coordinator" / "api" / "share_group_describe.py"
    wrong = "def handle(node: Node, request: Any, ctx: RequestContext) -> ListGroupsResponse:\n"
    start, end = MODULE.index("def handle("), MODULE.index("def error_response(")
    module.write_text(f"{MODULE[:start]}{wrong}    return ListGroupsResponse(groups=[])\n\n\n{MODULE[end:]}")
    said = mypy(tree)
    assert "[arg-type]" in said
    assert '"handle" of' in said or 'Argument "handle"' in said
