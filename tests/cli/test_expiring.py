# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups expiring`, of a running node and of a stopped one's directory."""

import json
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support import raw
from tests.support.command import groupkeeper
from tests.support.service import serving


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return groupkeeper("groups", "expiring", *arguments)


@pytest.mark.slow
def test_a_running_node_and_its_directory_say_the_same(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        raw.create_topic(service.bootstrap, "orders", 4)
        for group in ("", "a", "b"):
            raw.wait_for_coordinator(service.bootstrap, group)
            raw.commit_offsets(service.bootstrap, group, "orders", {0: 1, 1: 2, 3: 4})
        node = f"127.0.0.1:{service.metrics_port}"
        done = run("--node", node, "--within", "8d")
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[0].split()[:4] == ["GROUP", "STATE", "TOPIC", "OFFSETS"]
        assert sorted(line.split()[:4] for line in lines[1:4]) == [
            ["-", "Empty", "orders", "3"],
            ["a", "Empty", "orders", "3"],
            ["b", "Empty", "orders", "3"],
        ]
        assert lines[-1] == (
            "9 offsets in 3 groups will expire within 8d, 0 of them at the next check; "
            "3 groups will have none left, and will be deleted, too"
        )
        assert run("--node", node, "--within", "6d").stdout.startswith("0 offsets in 0 groups")
        rows = json.loads(run("--node", node, "--within", "8d", "--json").stdout)[0]["rows"]
        refused = run("--data-dir", str(service.data_dir))
        assert refused.returncode == 1
        assert "in use by process" in refused.stderr
        connection = HTTPConnection("127.0.0.1", service.metrics_port, timeout=120)
        for bad in ("", "?within_ms=-1", "?within_ms=x", "?within_ms=999999999999999999"):
            connection.request("GET", f"/groups/expiring{bad}")
            answer = connection.getresponse()
            assert answer.status == 400
            assert b"within_ms" in answer.read()
        connection.close()
        service.terminate()
        (offline,) = json.loads(run("--data-dir", str(service.data_dir), "--within", "8d", "--json").stdout)
        assert sorted(offline["rows"], key=str) == sorted(rows, key=str)
        service.start()
        raw.commit_offsets(service.bootstrap, "a", "orders", {0: 5})
        service.kill9()
        unclean = run("--data-dir", str(service.data_dir))
        assert (unclean.returncode, "not stopped cleanly" in unclean.stderr) == (1, True)


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--within", "7"), 2, "--within 7: expected a number with s, m, h, d or w"),
        (("--node", "nowhere"), 2, "--node nowhere: expected HOST:PORT"),
        (("--node", "127.0.0.1:1"), 1, "127.0.0.1:1: no response from a node's metrics.listen"),
        (("--data-dir", "/nowhere"), 2, "/nowhere: there is no such directory"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert done.stderr.startswith(f"groupkeeper: {says}")
    assert done.stderr.count("\n") == 1
