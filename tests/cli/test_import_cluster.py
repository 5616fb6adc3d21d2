# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper import --from-bootstrap`: topics and offsets of a cluster that runs, brought to another one."""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.groups.changes import CurrentGroup
from coordinator.cli.import_plan import ImportPlan, plan_cluster_import
from coordinator.cluster_requests.model import TopicPartition
from tests.cli.conftest import Command, consuming
from tests.cli.terminals import on_a_terminal
from tests.support import raw
from tests.support.service import serving


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of the node that takes over."""
    with serving(tmp_path_factory.mktemp("target"), {"group.initial.rebalance.delay.ms": 0}) as service:
        yield service.bootstrap


@pytest.mark.process
def test_a_terminal_shows_the_progress(bootstrap: str, target: str) -> None:
    name = f"shown-{uuid.uuid4().hex[:10]}"
    raw.create_topic(bootstrap, name, 1)
    raw.wait_for_coordinator(bootstrap, name)
    raw.commit_offsets(bootstrap, name, name, {0: 10})
    source = ("--from-bootstrap", bootstrap, "--topic", name, "--group", name)
    shown = on_a_terminal("import", *source, "--bootstrap", target, "--execute", columns=120)
    assert shown.index("committing offsets of groups") < shown.index("1/1") < shown.index("1 topic created")


class Import:
    """Takes over the topics and groups that are like these."""

    def __init__(self, groupkeeper: Command, source: str, target: str, group: str, topic: str) -> None:
        self._groupkeeper = groupkeeper
        self._flags = ["--from-bootstrap", source, "--bootstrap", target, "--topic", topic, "--group", group]

    def __call__(self, *flags: str) -> tuple[int, str, str]:
        return self._groupkeeper("import", *self._flags, "--execute", *flags)

    def dry(self) -> tuple[int, str, str]:
        return self._groupkeeper("import", *self._flags)


def test_topics_and_offsets_are_brought_over_and_kept_in_step(
    groupkeeper: Command, bootstrap: str, target: str
) -> None:
    prefix = f"moved-{uuid.uuid4().hex[:10]}"
    topic, group = f"{prefix}-topic", f"{prefix}-group"
    raw.create_topic(bootstrap, topic, 4)
    raw.wait_for_coordinator(bootstrap, group)
    raw.commit_offsets(bootstrap, group, topic, {0: 10, 3: 13})
    take_over = Import(groupkeeper, bootstrap, target, f"{prefix}*", f"{prefix}*")

    dry = take_over.dry()
    assert dry[2] == "dry run: nothing was changed; --execute makes the changes\n", (
        "no bar, but in a terminal"
    )
    lines = [f"would be created: topic {topic} with 4 partitions", f"would be set: group {group}, 2 offsets"]
    assert (dry[0], dry[1].splitlines()[:2]) == (0, lines)
    assert raw.metadata(target, topic).topics[0].error_code != raw.NONE
    done = take_over()
    summary = "1 topic created, 0 grown; 2 offsets of 1 group set; already the same: 0"
    assert (done[0], done[1].splitlines()[-1]) == (0, summary)
    assert raw.fetch_offsets(target, group) == {(topic, 0): 10, (topic, 3): 13}
    assert len(raw.metadata(target, topic).topics[0].partitions) == 4

    again = take_over()
    assert again[:2] == (0, "0 topics created, 0 grown; 0 offsets of 0 groups set; already the same: 2\n")

    grown = groupkeeper("topics", "add-partitions", topic, "--partitions", "6", "--bootstrap", bootstrap)
    assert grown.exit_code == 0
    raw.create_topic(bootstrap, topic, 6)
    raw.commit_offsets(bootstrap, group, topic, {0: 11, 5: 15})
    refused = take_over()
    assert refused[0] == 1
    assert f"group {group} has different offsets here, in {topic}-0: --force overwrites them" in refused[2]
    assert raw.fetch_offsets(target, group) == {(topic, 0): 10, (topic, 3): 13}
    assert take_over("--force")[0] == 0
    assert raw.fetch_offsets(target, group) == {(topic, 0): 11, (topic, 3): 13, (topic, 5): 15}
    assert len(raw.metadata(target, topic).topics[0].partitions) == 6


def test_groups_with_members_are_named_on_both_sides(
    groupkeeper: Command, bootstrap: str, topic: str, stable_group: str, target: str
) -> None:
    take_over = Import(groupkeeper, bootstrap, target, stable_group, topic)
    note = f"group {stable_group} has members at the source: what they commit from now on is not taken over\n"
    raw.create_topic(target, topic, 4)
    with consuming(target, stable_group, topic):
        refused = take_over("--force")
        assert refused[0] == 1
        assert refused[2] == f"{note}groupkeeper: group {stable_group} has members here: stop them first\n"
        assert raw.fetch_offsets(target, stable_group) == {}
    assert take_over()[::2] == (0, note)
    assert raw.fetch_offsets(target, stable_group) == {(topic, 0): 10, (topic, 3): 13}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "expected --from-log-dirs or --from-bootstrap"),
        (("--from-log-dirs", "d", "--from-bootstrap", "h:1"), "expected --from-log-dirs or --from-bootstrap"),
        (("--from-bootstrap", "h:1", "--data-dir", "d"), "leave out --data-dir"),
        (("--from-log-dirs", "d", "--topic", "t"), "leave out --group and --topic"),
        (("--from-bootstrap", "h"), "--from-bootstrap h: expected HOST:PORT"),
    ],
)
def test_what_makes_no_sense_is_a_mistake(groupkeeper: Command, flags: tuple[str, ...], said: str) -> None:
    ran = groupkeeper("import", *flags)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr


def test_a_cluster_is_not_brought_to_itself(groupkeeper: Command) -> None:
    ran = groupkeeper("import", "--from-bootstrap", "a:1,b:2", "--bootstrap", "b:2")
    assert (ran.exit_code, ran.stderr) == (
        1,
        "groupkeeper: b:2 is in --from-bootstrap and in --bootstrap: it cannot be both\n",
    )


# --- plans, of any two clusters ---

NAMES = st.sampled_from(["orders", "jobs", "mail"])
COUNTS = st.dictionaries(NAMES, st.integers(1, 4))
ROWS = st.lists(
    st.builds(CommittedOffset, NAMES, st.integers(0, 4), st.integers(0, 3)), unique_by=lambda row: row.place
)
GROUPS = st.dictionaries(st.sampled_from("abc"), ROWS)


Clusters = tuple[dict[str, int], dict[str, int], dict[str, list[CommittedOffset]], dict[str, CurrentGroup]]


@st.composite
def clusters(draw: st.DrawFn) -> Clusters:
    """Topics and offsets at the source, and at the target topics and groups that have offsets in them."""
    there, source = draw(COUNTS), draw(GROUPS)
    target = {}
    for group in source:
        rows = [row for row in draw(ROWS) if row.partition < there.get(row.topic, 0)]
        target[group] = CurrentGroup(draw(st.integers(0, 2)), True, {row.place: row for row in rows})
    return draw(COUNTS), there, source, target


def carried_out(
    plan: ImportPlan, topics: dict[str, int], target: dict[str, CurrentGroup]
) -> tuple[dict[str, int], dict[str, CurrentGroup]]:
    """What the target has once the plan was carried out."""
    after = {
        group: CurrentGroup(
            now.members,
            now.exists,
            {**now.committed, **{row.place: row for row in plan.offsets.get(group, [])}},
        )
        for group, now in target.items()
    }
    return {**topics, **plan.create, **plan.grow}, after


@given(clusters(), st.booleans())
def test_a_plan_brings_over_all_that_it_does_not_name(state: Clusters, overwrite: bool) -> None:
    source_topics, target_topics, source, target = state
    plan = plan_cluster_import(source_topics, target_topics, source, target, overwrite=overwrite)
    topics, after = carried_out(plan, target_topics, target)
    assert all(topics[name] >= count for name, count in source_topics.items())
    assert all(topics[name] >= count for name, count in target_topics.items()), "nothing gets smaller"
    for group, rows in source.items():
        left_out = set(plan.homeless.get(group, []))
        for row in rows:
            if group in plan.has_members or group in plan.differs or row.place in left_out:
                continue
            assert after[group].committed[row.place].offset == row.offset
            assert row.partition < topics[row.topic]
    for group in plan.offsets:
        assert not target[group].has_members
    if not overwrite:
        assert all(
            after[group].committed[place] == row
            for group, now in target.items()
            for place, row in now.committed.items()
        )


@given(clusters(), st.booleans())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(state: Clusters, overwrite: bool) -> None:
    source_topics, target_topics, source, target = state
    plan = plan_cluster_import(source_topics, target_topics, source, target, overwrite=overwrite)
    topics, after = carried_out(plan, target_topics, target)
    again = plan_cluster_import(source_topics, topics, source, after, overwrite=overwrite)
    assert (again.create, again.grow, again.offsets) == ({}, {}, {})
    assert (again.differs, again.has_members) == (plan.differs, plan.has_members)


def test_a_partition_that_will_not_be_there_is_left_out() -> None:
    rows = [CommittedOffset("gone", 0, 1), CommittedOffset("orders", 0, 1), CommittedOffset("orders", 7, 1)]
    plan = plan_cluster_import(
        {"orders": 2}, {}, {"g": rows}, {"g": CurrentGroup(0, False, {})}, overwrite=False
    )
    assert plan.homeless == {"g": [TopicPartition("gone", 0), TopicPartition("orders", 7)]}
    assert plan.offsets == {"g": [rows[1]]}
