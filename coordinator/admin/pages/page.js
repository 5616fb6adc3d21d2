// SPDX-License-Identifier: Apache-2.0
// Shows the view that the address names, and refreshes it while the page can be seen.

import { element, replaceIfChanged, updateTimes } from "./parts.js";

const REFRESH_MS = 10_000;
const VIEWS = { "": "./groups.js", group: "./group.js", nodes: "./nodes.js" };

const name = location.pathname.split("/").pop();
const fresh = document.getElementById("fresh");
const notices = document.getElementById("notices");
let shownAt = null;
let running = null;

for (const link of document.querySelectorAll("nav a")) {
  if (link.getAttribute("href") === (name || "./")) link.setAttribute("aria-current", "page");
}

const view = (await import(VIEWS[name] ?? VIEWS[""])).makeView(refresh);
setTitle(view.title);
document.getElementById("view").append(...view.nodes);
await refresh();
setInterval(refreshIfIdle, REFRESH_MS);
setInterval(updateTimes, 1_000);
document.addEventListener("visibilitychange", refreshIfIdle);

// A question that is under way is not given up for this: its answer may take longer than the time between two.
function refreshIfIdle() {
  if (fresh.checked && !document.hidden && running === null) refresh();
}

function setTitle(title) {
  document.getElementById("title").textContent = title;
  document.title = `${title} - Groupkeeper`;
}

// Asks once more, and returns false if that fails; an earlier question that has no answer yet is given up.
async function refresh() {
  running?.abort();
  const asking = (running = new AbortController());
  document.getElementById("main").setAttribute("aria-busy", "true");
  let found;
  let good = true;
  try {
    found = await view.refresh(asking.signal);
    shownAt = new Date();
  } catch (error) {
    if (asking.signal.aborted) return true;
    good = false;
    found = [{ kind: "bad", lines: [failure(error)] }];
  }
  if (asking.signal.aborted) return true;
  running = null;
  document.getElementById("main").setAttribute("aria-busy", "false");
  showNotices(found);
  updateTimes();
  return good;
}

function failure(error) {
  const reason = error instanceof TypeError ? "the node does not answer" : error.message;
  return shownAt ? `Last updated at ${shownAt.toLocaleTimeString("en-GB")}: ${reason}.` : `Nothing can be shown: ${reason}.`;
}

// Each notice has a kind ("bad" or "busy") and lines, which are texts or nodes.
function showNotices(found) {
  const shown = found.filter((notice) => notice.lines.length).map(({ kind, lines }) =>
    lines.length === 1
      ? element("p", { class: `notice ${kind}` }, lines[0])
      : element("div", { class: `notice ${kind}` }, element("ul", {}, ...lines.map((line) => element("li", {}, line)))));
  replaceIfChanged(notices, shown);
}
