// SPDX-License-Identifier: Apache-2.0
// What all views are made of. Every text gets into the page as a text node: group ids and metadata belong to clients.

const NUMBER = new Intl.NumberFormat("en");
const EXACT_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

export function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// Replaces the children of a node unless they look the same: a screen reader reads out what has changed.
export function replaceIfChanged(node, children) {
  const next = element("div", {}, ...children);
  if (next.innerHTML !== node.innerHTML) node.replaceChildren(...next.childNodes);
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// --- texts ---

export const formatNumber = (number) => NUMBER.format(number);

export function formatCount(number, one, many = `${one}s`) {
  return `${formatNumber(number)} ${number === 1 ? one : many}`;
}

export function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit += 1) bytes /= 1024;
  return `${bytes.toFixed(unit && bytes < 10 ? 1 : 0)} ${units[unit]}`;
}

// A duration in at most two units: "350 ms", "1.5 s", "1 min 29 s", "3 h 5 min", "2 d 4 h".
export function formatDuration(ms) {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const parts = [];
  let seconds = Math.floor(ms / 1_000);
  for (const [size, name] of units) {
    if (seconds >= size || parts.length) parts.push([Math.floor(seconds / size), name]);
    seconds %= size;
  }
  return parts.slice(0, 2).filter(([count]) => count).map(([count, name]) => `${count} ${name}`).join(" ");
}

// The numbers of partitions as ranges: "0–2, 5".
export function formatPartitions(partitions) {
  const ranges = [];
  for (const partition of partitions) {
    const last = ranges.at(-1);
    if (last && last[1] === partition - 1) last[1] = partition;
    else ranges.push([partition, partition]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}

export function formatMissing(part) {
  const node = part.node < 0 ? "no node" : `node ${part.node}`;
  const partitions = part.partitions.length ? `, partitions ${formatPartitions(part.partitions)}` : "";
  return `Not shown: ${node}${partitions}: ${part.reason}`;
}

// --- nodes ---

export const unknown = () => element("span", { class: "quiet" }, "unknown");

export const numberOrUnknown = (number) => (number === null ? unknown() : formatNumber(number));

// A time as the distance from now, which `updateTimes` keeps current.
export function timeNode(ms) {
  if (ms === null) return element("span", { class: "quiet" }, "never");
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return unknown();
  const node = element("time", { datetime: at.toISOString(), title: EXACT_TIME.format(at) });
  updateTime(node);
  return node;
}

export function updateTimes() {
  for (const node of document.querySelectorAll("time")) updateTime(node);
}

function updateTime(node) {
  const passed = Date.now() - Date.parse(node.dateTime);
  setText(node, passed < 1_000 ? "now" : `${formatDuration(passed - (passed % 1_000))} ago`);
}

const STATE_KINDS = {
  Stable: "good", PreparingRebalance: "busy", CompletingRebalance: "busy",
  ready: "good", incomplete: "busy", "not ready": "bad",
  served: "good", loading: "busy", waiting: "busy", failed: "bad",
};

export const stateNode = (state) => element("span", { class: `state ${STATE_KINDS[state] ?? "plain"}` }, state);

// Shows facts as pairs of a name and a text or node.
export function showFacts(list, facts) {
  replaceIfChanged(list, facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

// --- questions ---

export async function ask(path, parameters, signal) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null);
  const answer = await fetch(`api/v1/${path}?${new URLSearchParams(given)}`, { signal });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the node answers with status ${answer.status}`);
  return answer.json();
}

// --- tables ---

// A table that keeps the rows that have not changed, so that a refresh takes away neither the focus nor an open row.
// A column has a label, a function for the value, and may be a number, a long text, the head of its row, spare (it is
// left out on a narrow screen), or sorted by a key.
export class Table {
  constructor(caption, columns, keyOf, { empty, onSort } = {}) {
    this.columns = columns;
    this.keyOf = keyOf;
    this.empty = empty ?? "None";
    this.rows = new Map();
    this.heads = columns.map((column) => this.makeHead(column, onSort));
    this.body = element("tbody", {});
    const table = element("table", {}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...this.heads)), this.body);
    this.node = element("div", { class: "wide", role: "region", "aria-label": caption, tabindex: "0" }, table);
  }

  makeHead(column, onSort) {
    const head = element("th", { scope: "col", class: classOf(column) });
    if (!column.sort) {
      head.append(column.label);
      return head;
    }
    const button = element("button", { type: "button" }, column.label);
    button.addEventListener("click", () => onSort(column));
    head.append(button);
    return head;
  }

  showOrder(sort, order) {
    this.columns.forEach((column, number) => {
      if (column.sort === sort) this.heads[number].setAttribute("aria-sort", order === "desc" ? "descending" : "ascending");
      else this.heads[number].removeAttribute("aria-sort");
    });
  }

  show(rows) {
    const shown = new Map();
    for (const row of rows) {
      const key = this.keyOf(row);
      const text = JSON.stringify(row);
      const known = this.rows.get(key) ?? { line: element("tr", {}), text: null };
      if (known.text !== text) replaceCells(known.line, this.columns.map((column) => makeCell(column, row)));
      shown.set(key, { line: known.line, text });
    }
    this.rows = shown;
    const lines = [...shown.values()].map(({ line }) => line);
    if (!lines.length) lines.push(element("tr", {}, element("td", { colspan: `${this.columns.length}`, class: "quiet" }, this.empty)));
    const before = [...this.body.children];
    if (lines.length !== before.length || lines.some((line, number) => line !== before[number])) {
      keepFocus(this.body, () => this.body.replaceChildren(...lines));
    }
  }
}

function classOf(column) {
  return [column.number && "number", column.spare && "spare", column.text && "text"].filter(Boolean).join(" ") || undefined;
}

function makeCell(column, row) {
  const value = column.value(row);
  const attributes = { class: classOf(column), scope: column.head ? "row" : undefined };
  return element(column.head ? "th" : "td", attributes, ...(Array.isArray(value) ? value : [value]));
}

function replaceCells(line, cells) {
  const open = [...line.querySelectorAll("details")].map((details) => details.open);
  const focused = [...line.querySelectorAll("a, summary")].indexOf(document.activeElement);
  line.replaceChildren(...cells);
  [...line.querySelectorAll("details")].forEach((details, number) => (details.open = open[number] ?? false));
  if (focused >= 0) [...line.querySelectorAll("a, summary")][focused]?.focus();
}

// Moving a line in the page takes the focus from what is in it.
function keepFocus(body, change) {
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  change();
  if (focused && body.contains(focused)) focused.focus();
}

// --- pages ---

// Goes from page to page of a list that only knows the position after which a page begins.
export class Pager {
  constructor(label, onMove, positions) {
    this.positions = positions?.length ? positions : [null];
    this.next = null;
    this.back = element("button", { type: "button" }, "Previous page");
    this.forth = element("button", { type: "button" }, "Next page");
    this.back.addEventListener("click", () => this.move(this.positions.slice(0, -1), onMove));
    this.forth.addEventListener("click", () => this.move([...this.positions, this.next], onMove));
    this.node = element("nav", { class: "pager", "aria-label": label }, this.back, this.forth);
  }

  // Until the page is there, no further step can be taken: a button that is pressed twice moves once.
  async move(positions, onMove) {
    const before = this.positions;
    this.positions = positions;
    this.back.disabled = this.forth.disabled = true;
    if ((await onMove()) === false) {
      this.positions = before;
      this.show(this.next);
    }
  }

  get after() {
    return this.positions.at(-1);
  }

  reset() {
    this.positions = [null];
  }

  show(next) {
    this.next = next;
    this.back.disabled = this.positions.length === 1;
    this.forth.disabled = next === null;
    this.node.hidden = this.back.disabled && this.forth.disabled;
  }
}
