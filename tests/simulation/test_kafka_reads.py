# SPDX-License-Identifier: Apache-2.0
"""Kafka's own serdes read the logs that simulated nodes have written, and find what we know to be in them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.processes import simulate
from tests.storage.test_kafka_reads import dump

SEEDS = (1, 2)
"""A node that is alone, and a supervisor with workers."""
SIMULATED_S = 150
RECORD = re.compile(r"\| offset: (\d+) .* key: (\{.*\}) payload: (\{.*\}|<DELETE>)$")


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kafka_reads_every_record_of_simulated_nodes(tmp_path: Path) -> None:
    for seed in SEEDS:
        done = simulate("--seed", seed, "--simulated", SIMULATED_S, "--keep", tmp_path / str(seed))
        assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    directories = [tmp_path / str(seed) for seed in SEEDS]
    assert not [path for directory in directories for path in directory.glob("journal*")]
    logs = [log for directory in directories for log in sorted(directory.glob("__consumer_offsets-*/*.log"))]
    printed = dump(*logs)  # one Java for all
    assert "isvalid: false" not in printed
    assert printed.count("isvalid: true") > 500
    by_file = dict(re.findall(r"Dumping (\S+)\n(.*?)(?=^Dumping |\Z)", printed, re.DOTALL | re.MULTILINE))
    for directory in directories:
        texts = [text for path, text in by_file.items() if Path(path).is_relative_to(directory)]
        assert fold(texts) == json.loads((directory / "ledger.json").read_text())


def fold(texts: list[str]) -> dict[str, Any]:
    """All groups after these records, which stand in the order of each partition, as `Ledger.facts` shows them."""
    groups: dict[str, Any] = {}
    for text in texts:
        for line in text.splitlines():
            found = RECORD.match(line)
            if found is None:
                assert "payload" not in line, line
                continue
            key, payload = json.loads(found[2]), found[3]
            data = None if payload == "<DELETE>" else json.loads(payload)["data"]
            if key["type"] == "2":
                apply_group(groups, key["data"]["group"], data)
            else:
                assert key["type"] == "1", line
                apply_offset(groups, key["data"], data)
    return groups


def apply_group(groups: dict[str, Any], name: str, data: Mapping[str, Any] | None) -> None:
    if data is None:
        groups.pop(name, None)
        return
    group = groups.setdefault(name, {"offsets": {}})
    group["generation"] = data["generation"]
    group["members"] = {each["memberId"]: parts(each["assignment"]) for each in data["members"]}


def apply_offset(groups: dict[str, Any], key: Mapping[str, Any], data: Mapping[str, Any] | None) -> None:
    where = f"{key['topic']} {key['partition']}"
    if data is not None:
        group = groups.setdefault(key["group"], {"generation": None, "members": {}, "offsets": {}})
        group["offsets"][where] = [data["offset"], data["commitTimestamp"]]
        return
    group = groups.get(key["group"])
    if group is not None:
        group["offsets"].pop(where, None)
        if group["generation"] is None and not group["offsets"]:
            del groups[key["group"]]


def parts(assignment: Any) -> dict[str, list[int]]:
    """What the tool makes of a ConsumerProtocolAssignment."""
    assigned = assignment["assignedPartitions"] if assignment else []
    return {each["topic"]: sorted(each["partitions"]) for each in assigned}
