// SPDX-License-Identifier: Apache-2.0
// One group: its members with their assignments, its offsets, and its last rebalances.

import {
  Pager, Table, ask, element, formatCount, formatDuration, formatNumber, formatPartitions, numberOrUnknown, setText, showFacts,
  stateNode, timeNode, unknown,
} from "./parts.js";

export function makeView(refresh) {
  const group = new URLSearchParams(location.search).get("group") ?? "";
  const facts = element("dl", { class: "facts" });
  const running = element("p", { class: "notice busy", hidden: true });
  const members = makeList("Members", "members", MEMBER_COLUMNS, (row) => row.member, "The group has no members");
  const offsets = makeList("Committed offsets", "offsets", OFFSET_COLUMNS, (row) => `${row.partition}:${row.topic}`, "The group has no committed offsets");
  const rebalances = new Table("Last rebalances", REBALANCE_COLUMNS, (row) => `${row.generation}:${row.began_ms}`, {
    empty: "None since the node started",
  });
  const sections = element("div", { hidden: true },
    running, facts,
    element("h2", {}, "Members"), members.table.node, members.pager.node,
    element("h2", {}, "Committed offsets"), offsets.table.node, offsets.pager.node,
    element("h2", {}, "Last rebalances"), rebalances.node);

  function makeList(caption, path, columns, keyOf, empty) {
    return { path, table: new Table(caption, columns, keyOf, { empty }), pager: new Pager(`Pages of ${caption.toLowerCase()}`, refresh) };
  }

  async function askForPage(list, signal) {
    const page = await ask(`group/${list.path}`, { group, after: list.pager.after }, signal);
    return () => {
      list.table.show(page[list.path]);
      list.pager.show(page.next);
    };
  }

  async function ownRefresh(signal) {
    const [found, ...show] = await Promise.all([
      ask("group", { group }, signal), askForPage(members, signal), askForPage(offsets, signal),
    ]);
    sections.hidden = false;
    showFacts(facts, describe(found));
    rebalances.show(found.rebalances);
    for (const each of show) each();
    // No live region: the time in it changes with each refresh.
    running.hidden = found.rebalance === null;
    setText(running, found.rebalance === null ? "" : describeRunning(found.rebalance));
    return [];
  }

  return { title: group || "(empty id)", nodes: [sections], refresh: ownRefresh };
}

function describe(found) {
  return [
    ["State", stateNode(found.state)],
    ["Lag", numberOrUnknown(found.lag)],
    ["Members", formatNumber(found.members)],
    ["Committed offsets", formatNumber(found.offsets)],
    ["Protocol", [found.protocol_type, found.protocol].filter(Boolean).join(", ") || "none"],
    ["Generation", formatNumber(found.generation)],
    ["Node", `${found.node}`],
    ["Partition", `${found.partition}`],
    ["Leader", found.leader || "none"],
  ];
}

function describeRunning(rebalance) {
  const passed = formatDuration(Math.max(0, Date.now() - rebalance.began_ms));
  const awaited = rebalance.awaited ? `, waiting for ${formatCount(rebalance.awaited, "member")}` : "";
  return `Rebalancing for ${passed} (${formatCause(rebalance.cause)})${awaited}`;
}

const formatCause = (cause) => cause.replaceAll("_", " ");

function assignmentNode(member) {
  if (member.partitions === null) return unknown();
  if (!member.partitions) return element("span", { class: "quiet" }, "none");
  const topics = Object.entries(member.assignment);
  const shown = topics.reduce((sum, [, partitions]) => sum + partitions.length, 0);
  const lines = topics.map(([topic, partitions]) => element("li", {}, `${topic}: ${formatPartitions(partitions)}`));
  if (shown < member.partitions) lines.push(element("li", {}, `and ${formatCount(member.partitions - shown, "more partition")}`));
  return element("details", {}, element("summary", {}, formatCount(member.partitions, "partition")), element("ul", {}, ...lines));
}

const MEMBER_COLUMNS = [
  {
    label: "Member", head: true, text: true,
    value: (row) => [row.member, ...(row.instance === null ? [] : [element("div", { class: "quiet" }, `instance ${row.instance}`)]),
      ...(row.awaited ? [" ", element("span", { class: "state busy" }, "awaited")] : [])],
  },
  { label: "Client", text: true, spare: true, value: (row) => row.client },
  { label: "Host", value: (row) => row.host },
  { label: "Assignment", text: true, value: assignmentNode },
];

const OFFSET_COLUMNS = [
  { label: "Topic", head: true, text: true, value: (row) => row.topic },
  { label: "Partition", number: true, value: (row) => `${row.partition}` },
  { label: "Offset", number: true, value: (row) => formatNumber(row.offset) },
  { label: "End", number: true, spare: true, value: (row) => numberOrUnknown(row.end) },
  { label: "Lag", number: true, value: (row) => numberOrUnknown(row.lag) },
  { label: "Committed", value: (row) => timeNode(row.committed_ms) },
  { label: "Metadata", text: true, spare: true, value: (row) => row.metadata },
];

const REBALANCE_COLUMNS = [
  { label: "Began", head: true, value: (row) => timeNode(row.began_ms) },
  { label: "Cause", value: (row) => formatCause(row.cause) },
  { label: "Duration", number: true, value: (row) => formatDuration(row.duration_ms) },
  {
    label: "Slowest member", text: true,
    value: (row) => row.slowest_member
      ? [row.slowest_member, element("div", { class: "quiet" }, `${row.slowest_member_host} waited for ${formatDuration(row.slowest_member_ms)}`.trim())]
      : element("span", { class: "quiet" }, "none"),
  },
  { label: "Assignment by the leader", number: true, spare: true, value: (row) => (row.leader ? formatDuration(row.assignment_ms) : "none") },
  { label: "Members", number: true, spare: true, value: (row) => formatNumber(row.members) },
  { label: "Generation", number: true, spare: true, value: (row) => formatNumber(row.generation) },
];
