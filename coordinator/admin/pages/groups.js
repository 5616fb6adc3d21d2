// SPDX-License-Identifier: Apache-2.0
// The list of groups: searched, sorted and paged by the node. The address and the history keep what is shown.

import {
  Pager, Table, ask, element, formatCount, formatMissing, formatNumber, numberOrUnknown, setText, stateNode,
} from "./parts.js";

const STATES = ["Stable", "Empty", "PreparingRebalance", "CompletingRebalance"];
const SEARCH_DELAY_MS = 250;
const LIMITS = ["25", "50", "100", "500"];
const DEFAULTS = { search: "", state: "", sort: "group", order: "asc", limit: "50" };

export function makeView(refresh) {
  const query = readQuery(new URLSearchParams(location.search));
  const pager = new Pager("Pages of groups", change, history.state?.positions);
  const search = element("input", { type: "search", autocomplete: "off", spellcheck: "false", maxlength: "1000", value: query.search });
  const state = choice(STATES, query.state, "All states");
  const limit = choice(LIMITS, query.limit);
  const summary = element("p", { class: "summary", role: "status" });
  const table = new Table("Groups", COLUMNS, (row) => row.group, { empty: "No group matches", onSort: sortBy });
  let waiting = null;

  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => restart({ search: search.value }), SEARCH_DELAY_MS);
  });
  state.addEventListener("change", () => restart({ state: state.value }));
  limit.addEventListener("change", () => restart({ limit: limit.value }));
  const filter = element("form", { class: "filter", role: "search" },
    element("label", {}, "Group id contains ", search),
    element("label", {}, "State ", state),
    element("label", {}, "Groups per page ", limit));
  filter.addEventListener("submit", (event) => event.preventDefault());

  function sortBy(column) {
    const first = column.number ? "desc" : "asc";
    const other = first === "desc" ? "asc" : "desc";
    restart({ sort: column.sort, order: query.sort === column.sort && query.order === first ? other : first });
  }

  function restart(changes) {
    Object.assign(query, changes);
    pager.reset();
    change();
  }

  const given = () => Object.fromEntries(Object.entries(query).filter(([name, value]) => value !== DEFAULTS[name]));

  function change() {
    const text = new URLSearchParams(given()).toString();
    history.replaceState({ positions: pager.positions }, "", text ? `?${text}` : location.pathname);
    return refresh();
  }

  async function ownRefresh(signal) {
    const [page, status] = await Promise.all([
      ask("groups", { ...given(), after: pager.after }, signal),
      ask("status", {}, signal),
    ]);
    table.showOrder(query.sort, query.order);
    table.show(page.groups);
    pager.show(page.next);
    const matching = Object.values(page.states).reduce((sum, count) => sum + count, 0);
    setText(summary, matching === page.total ? formatCount(page.total, "group") : `${formatNumber(matching)} of ${formatCount(page.total, "group")}`);
    for (const option of state.options) {
      if (option.value) setText(option, `${option.value} (${formatNumber(page.states[option.value] ?? 0)})`);
    }
    const problems = status.problems.length
      ? [element("a", { href: "nodes" }, `${formatCount(status.problems.length, "problem")}: ${status.problems[0]}`)]
      : [];
    return [{ kind: "bad", lines: problems }, { kind: "busy", lines: page.missing.map(formatMissing) }];
  }

  return { title: "Groups", nodes: [filter, summary, table.node, pager.node], refresh: ownRefresh };
}

const COLUMNS = [
  { label: "Group", sort: "group", head: true, text: true, value: (row) => element("a", { href: `group?${new URLSearchParams({ group: row.group })}` }, row.group || "(empty id)") },
  { label: "State", sort: "state", value: (row) => stateNode(row.state) },
  { label: "Members", sort: "members", number: true, value: (row) => formatNumber(row.members) },
  { label: "Lag", sort: "lag", number: true, value: (row) => numberOrUnknown(row.lag) },
  { label: "Offsets", sort: "offsets", number: true, spare: true, value: (row) => formatNumber(row.offsets) },
  { label: "Rebalances", sort: "rebalances", number: true, spare: true, value: (row) => formatNumber(row.rebalances) },
  { label: "Node", number: true, spare: true, value: (row) => `${row.node}` },
];

// What the address asks for; a value that cannot be chosen here counts as none.
function readQuery(given) {
  const query = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) {
    const value = given.get(name);
    if (value !== null && (CHOICES[name]?.includes(value) ?? true)) query[name] = value;
  }
  return query;
}

const CHOICES = { state: STATES, limit: LIMITS, order: ["asc", "desc"], sort: COLUMNS.map((column) => column.sort).filter(Boolean) };

function choice(values, chosen, all) {
  const options = values.map((value) => element("option", { value, selected: value === chosen }, value));
  if (all) options.unshift(element("option", { value: "" }, all));
  return element("select", {}, ...options);
}
