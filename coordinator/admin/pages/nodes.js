// SPDX-License-Identifier: Apache-2.0
// The nodes with their logs, the cluster behind a gateway, the partitions, and everything that is wrong.

import {
  Pager, Table, ask, element, formatBytes, formatMissing, formatNumber, showFacts, stateNode, timeNode, unknown,
} from "./parts.js";

export function makeView(refresh) {
  const facts = element("dl", { class: "facts" });
  const nodes = new Table("Nodes and their logs", NODE_COLUMNS, (row) => row.node);
  const brokers = new Table("Brokers of the Kafka cluster", BROKER_COLUMNS, (row) => row.broker);
  const cluster = element("section", { hidden: true }, element("h2", {}, "Brokers of the Kafka cluster"), brokers.node);
  const partitions = new Table("Partitions of __consumer_offsets", PARTITION_COLUMNS, (row) => row.partition);
  const pager = new Pager("Pages of partitions", refresh);

  async function ownRefresh(signal) {
    const [status, page] = await Promise.all([
      ask("status", {}, signal), ask("partitions", { after: pager.after }, signal),
    ]);
    showFacts(facts, describe(status));
    nodes.show(status.nodes);
    cluster.hidden = status.upstream === null;
    brokers.show(Object.entries(status.upstream?.brokers ?? {}).map(([broker, found]) => ({ broker, ...found })));
    partitions.show(page.partitions);
    pager.show(page.next);
    return [{ kind: "bad", lines: status.problems }, { kind: "busy", lines: page.missing.map(formatMissing) }];
  }

  return {
    title: "Nodes",
    nodes: [facts, element("h2", {}, "Nodes and their logs"), nodes.node, cluster,
      element("h2", {}, "Partitions of __consumer_offsets"), partitions.node, pager.node],
    refresh: ownRefresh,
  };
}

function describe(status) {
  const facts = [
    ["State", stateNode(readiness(status))],
    ["Problems", status.problems.length ? formatNumber(status.problems.length) : "none"],
    ["Version", status.version ?? unknown()],
    ["Cluster id", status.cluster_id ?? unknown()],
  ];
  if (status.gateways) facts.push(["Gateway processes", `${status.gateways.serving} of ${status.gateways.wanted} accept clients`]);
  if (status.upstream) facts.push(["Kafka cluster", status.upstream.cluster_id ?? unknown()]);
  return facts;
}

const readiness = ({ ready, complete }) => (complete ? "ready" : ready ? "incomplete" : "not ready");

const bytesOrUnknown = (bytes) => (bytes === null ? unknown() : formatBytes(bytes));

const NODE_COLUMNS = [
  { label: "Node", head: true, value: (row) => `${row.node}` },
  { label: "State", value: (row) => stateNode(readiness(row)) },
  { label: "Groups", number: true, value: (row) => formatNumber(row.groups) },
  { label: "Partitions", number: true, value: (row) => formatNumber(row.partitions) },
  { label: "Loading", number: true, spare: true, value: (row) => formatNumber(row.loading) },
  { label: "Free disk space", number: true, value: (row) => bytesOrUnknown(row.disk_free) },
  { label: "Journals", number: true, spare: true, value: (row) => formatBytes(row.journal_bytes) },
  { label: "Last flush", spare: true, value: (row) => timeNode(row.last_flush_ms) },
];

const BROKER_COLUMNS = [
  { label: "Broker", head: true, value: (row) => row.broker },
  { label: "Address", text: true, value: (row) => row.address },
  { label: "State", text: true, value: (row) => row.error ?? "reachable" },
];

const PARTITION_COLUMNS = [
  { label: "Partition", head: true, value: (row) => `${row.partition}` },
  { label: "Node", number: true, value: (row) => `${row.node}` },
  { label: "State", text: true, value: (row) => [stateNode(row.state), ...(row.reason ? [` ${row.reason}`] : [])] },
  { label: "Groups", number: true, value: (row) => formatNumber(row.groups) },
  { label: "Log", number: true, value: (row) => bytesOrUnknown(row.log_bytes) },
  { label: "End offset", number: true, spare: true, value: (row) => (row.end_offset === null ? unknown() : formatNumber(row.end_offset)) },
  { label: "Leader epoch", number: true, spare: true, value: (row) => formatNumber(row.leader_epoch) },
];
