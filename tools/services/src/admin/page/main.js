// Fetches the state of the server every second while the page is visible, and handles keys.

import { showState, showSummary } from "./summary.js";
import { Table } from "./table.js";
import { Recorder } from "./trace.js";
import { Watch } from "./watch.js";
import { by, limitName, make, whole, write } from "./words.js";

const PAUSE = 1000;
const BETWEEN_PAGES = 80;

function request(path, signal) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { authorization: "Bearer " + token } : {};
  return fetch(path, { cache: "no-store", headers, signal });
}

async function ask(path) {
  try {
    const response = await request(path);
    if (response.status === 401) return { isRefused: true, reason: "token required" };
    if (!response.ok) return { reason: (await response.text()).trim() };
    return { answer: await response.json() };
  } catch {
    return { isGone: true, reason: "server unreachable" };
  }
}

const table = new Table(() => needRows(), id => watch.open(id));
const recorder = new Recorder(request);
const watch = new Watch(ask, id => {
  recorder.choose(id);
  table.watched = id;
  table.draw();
  if (id === null) table.focus();
});

// Fetches rows with one request at a time, even if the table scrolls faster.
let isFetching = false, isNeeded = false;
async function fetchRows() {
  if (isFetching) { isNeeded = true; return; }
  isFetching = true;
  const query = table.query();
  const { answer, reason } = await ask("/connections?" + query);
  isFetching = false;
  by("count").className = answer ? "" : "bad";
  if (answer) {
    showCounts(answer);
    table.show(answer);
  } else {
    write(by("count"), reason);
  }
  if (isNeeded && query !== table.query()) { isNeeded = false; fetchRows(); }
  isNeeded = false;
}
let later;
function needRows() {
  clearTimeout(later);
  later = setTimeout(fetchRows, BETWEEN_PAGES);
}

function showCounts(answer) {
  const isAll = answer.matching === answer.total;
  write(by("count"), isAll ? whole(answer.total) + " open" : whole(answer.matching) + " of " + whole(answer.total) + " open");
  const limits = Object.entries(answer.limits).sort((one, other) => other[1] - one[1]);
  const names = limits.map(([limit]) => limit).join();
  const chips = by("chips");
  if (chips.dataset.names !== names) {
    chips.dataset.names = names;
    chips.replaceChildren(...limits.map(([limit]) => {
      const chip = make("button");
      chip.type = "button";
      chip.dataset.limit = limit;
      chip.addEventListener("click", () => setFilter(by("filter").value === limit ? "" : limit));
      return chip;
    }));
  }
  limits.forEach(([limit, count], index) => {
    const chip = chips.children[index];
    write(chip, limitName(limit) + " " + whole(count));
    chip.setAttribute("aria-pressed", String(by("filter").value === limit));
  });
}

function setFilter(text) {
  by("filter").value = text;
  table.filterBy(text.trim());
}
let typing;
by("filter").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => table.filterBy(by("filter").value.trim()), 150);
});

function askForToken() {
  if (!by("ask").open) by("ask").showModal();
}
by("ask").addEventListener("close", () => {
  const given = by("token").value.trim();
  by("token").value = "";
  if (!given) return;
  sessionStorage.setItem("token", given);
  turn();
});
by("ask").addEventListener("cancel", () => { by("token").value = ""; });

let timer;
async function turn() {
  clearTimeout(timer);
  if (document.hidden) return;
  const { answer, reason, isRefused } = await ask("/status?connections=0");
  if (isRefused) {
    showState(reason, true);
    askForToken();
    return;
  }
  if (answer) {
    showSummary(answer);
    await fetchRows();
  } else {
    showState(reason, true);
  }
  clearTimeout(timer);
  timer = setTimeout(turn, PAUSE);
}
document.addEventListener("visibilitychange", turn);

by("keys").addEventListener("click", () => by("help").showModal());
const KEYS = {
  j: () => table.move(1), ArrowDown: () => table.move(1),
  k: () => table.move(-1), ArrowUp: () => table.move(-1),
  PageDown: () => table.move(table.visible - 3), PageUp: () => table.move(3 - table.visible),
  Home: () => table.choose(0, false), End: () => table.choose(table.matching - 1, false),
  Enter: () => table.open(),
  l: () => table.sortBy("limit", true),
  t: () => recorder.toggle(),
  "/": () => by("filter").focus(),
  "?": () => by("help").showModal(),
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || by("help").open || by("ask").open) return;
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "Escape") {
    if (watch.isOpen) watch.close();
    else if (by("filter").value) setFilter("");
    table.focus();
    return;
  }
  if (isTyping) {
    if (event.key === "Enter" || event.key === "ArrowDown") table.focus();
    return;
  }
  const isPressed = event.target instanceof HTMLButtonElement && event.key === "Enter";
  const act = KEYS[event.key];
  if (!act || isPressed) return;
  event.preventDefault();
  act();
});
turn();
