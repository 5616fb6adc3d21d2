# SPDX-License-Identifier: Apache-2.0
"""`python -m bench polling`: groups at the cluster are asked about together, and none is taken over."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bench.dialect import Topic
from bench.kafka import KafkaUnavailable, kafka_classpath
from bench.polling import tables
from bench.polling.brokers import RIGHTS
from bench.polling.monitor import POLLS, Shape
from bench.polling.tables import Counts, Measured, Round
from bench.wire import DESCRIBE_GROUPS, OFFSET_FETCH
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail

GROUPS = 60
DESCRIBED, FETCHED, FETCHED_EACH = (poll.name for poll in POLLS)
SHAPE = Shape(Topic("polled", None, 2), ["a", "b"], {0: 5, 1: 6})


def cells(page: str, title: str, *first: str) -> list[str]:
    """The cells of a row of a table behind the first ones."""
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    start = f"| {' | '.join(first)} | "
    (row,) = (line for line in section.splitlines() if line.startswith(start))
    return row.removeprefix(start).removesuffix(" |").split(" | ")


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_node_and_each_broker_is_asked_for_many_groups_at_once(
    documented: Documented, tmp_path: Path
) -> None:
    try:
        kafka_classpath()
    except KafkaUnavailable as error:
        skip_or_fail(str(error))
    page = tmp_path / "RESULTS.md"
    (command,) = documented.commands
    documented.run(command, {"--write": f"--groups {GROUPS} --rounds 2 --write {page}"})
    shown = page.read_text()
    for number in ("1", "2"):
        # A node says which groups are here before the cluster is asked and after it was.
        assert cells(shown, tables.ASKED, DESCRIBED, number)[:4] == ["2", "2 + 2", "2 + 2 + 2", "0 + 0 + 0"]
        assert cells(shown, tables.ASKED, FETCHED, number)[:4] == ["2", "2 + 2", "0 + 0 + 0", "2 + 2 + 2"]
        requests, located, described, fetched, *_ = cells(shown, tables.ASKED, FETCHED_EACH, number)
        assert (requests, described) == (str(GROUPS), "0 + 0 + 0")
        assert sum(map(int, located.split(" + "))) == 2 * GROUPS
        assert sum(map(int, fetched.split(" + "))) == GROUPS
    looked_up = cells(shown, tables.ASKED, DESCRIBED, "1")[4]
    assert sum(map(int, looked_up.split(" + "))) == 2, "once for all groups of a node"
    assert cells(shown, tables.ASKED, DESCRIBED, "2")[4] == "0 + 0 + 0", "coordinators are remembered"
    for poll in POLLS:
        assert len(re.findall(r"\d+", cells(shown, tables.TAKEN, poll.name, tables.GATEWAY)[0])) == 2
        for process in ("gateway", "node"):
            assert all(float(cell) > 0 for cell in cells(shown, tables.TURNS, poll.name, process))
    assert "had taken over afterwards: 0." in shown


def test_the_page_has_a_figure_for_each_round() -> None:
    took = [
        Round(DESCRIBED, way, wall_ms, dict.fromkeys(names, wall_ms / 2))
        for wall_ms in (10.0, 20.0)
        for way, names in ((tables.DIRECTLY, ["brokers"]), (tables.GATEWAY, ["brokers", "gateway"]))
    ]
    brokers = [Counter({"DescribeGroups": 2, RIGHTS: 1}), Counter({"DescribeGroups": 1_000})]
    asked = [Counts(DESCRIBED, 2, [1, 3], brokers)] * 2
    page = tables.markdown(Measured(2_000, 10, 2, took, asked, [], 7), {})
    assert page.startswith(f"{tables.TITLE}\n\n2,000 groups with 10 committed offsets")
    assert cells(page, tables.TAKEN, DESCRIBED, tables.DIRECTLY) == ["10, 20", "5, 10", ""]
    assert cells(page, tables.TAKEN, DESCRIBED, tables.GATEWAY) == ["10, 20", "5, 10", "5, 10"]
    for number in ("1", "2"):
        found = cells(page, tables.ASKED, DESCRIBED, number)
        assert found == ["2", "1 + 3", "2 + 1,000", "0 + 0", "0 + 0", "1 + 0"]
    assert page.endswith("had taken over afterwards: 7.")


def test_a_description_is_right_of_a_group_without_members() -> None:
    group = DESCRIBE_GROUPS.response.DescribedGroup
    found = [
        group(group_id="a", error_code=0, group_state="Empty"),
        group(group_id="b", error_code=0, group_state="Dead"),
    ]
    assert POLLS[0].is_right(DESCRIBE_GROUPS.response(groups=found), SHAPE) == {"a": True, "b": False}


@pytest.mark.parametrize("poll", POLLS[1:], ids=lambda poll: poll.name)
def test_offsets_are_right_that_were_committed(poll: object) -> None:
    answer = OFFSET_FETCH.response
    group = answer.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    part = topic.OffsetFetchResponsePartitions

    def row(name: str, offsets: dict[int, int]) -> object:
        parts = [part(partition_index=index, committed_offset=at) for index, at in offsets.items()]
        return group(group_id=name, error_code=0, topics=[topic(name="polled", partitions=parts)])

    rows = [row("a", {0: 5, 1: 6}), row("b", {0: 5, 1: 7}), group(group_id="c", error_code=0, topics=[])]
    assert poll in POLLS
    assert POLLS[1].is_right(answer(groups=rows), SHAPE) == {"a": True, "b": False, "c": False}
