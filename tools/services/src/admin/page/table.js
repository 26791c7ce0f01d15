// The table of connections. The server sorts, filters and limits the rows; only visible rows have elements.

import { bits, by, bytes, limitName, make, millis, percent, time, whole, write } from "./words.js";

const ROW = 28;
const BEYOND = 8;
const quic = (row, show) => row.quic ? show(row.quic) : "";
const rate = value => value === null ? "" : bits(value);
const share = row => row.limit_share === null ? "" : " " + percent(row.limit_share);

// Name in the JSON, title, text of a cell, class, and whether the first click sorts in ascending order.
const COLUMNS = [
  ["id", "#", row => String(row.id), "w-id", true],
  ["client", "client", row => row.client, "text w-client", true],
  ["name", "name", row => row.name ?? "", "text w-name", true],
  ["protocol", "protocol", row => row.protocol, "text w-protocol", true],
  ["limit", "limited by", row => row.limit ? limitName(row.limit) + share(row) : "", "text w-limit"],
  ["state", "state", row => row.state, "text w-protocol", true],
  ["received_rate", "received", row => rate(row.received_rate), "w-rate"],
  ["sent_rate", "sent", row => rate(row.sent_rate), "w-rate"],
  ["rtt_ms", "RTT", row => quic(row, it => millis(it.rtt_ms)), "w-size"],
  ["congestion_window", "window", row => quic(row, it => bytes(it.congestion_window)), "w-size"],
  ["bytes_in_flight", "in flight", row => quic(row, it => bytes(it.bytes_in_flight)), "w-size"],
  ["packets_lost", "lost", row => quic(row, it => whole(it.packets_lost)), "w-count"],
  ["requests", "requests", row => whole(row.requests), "w-size"],
  ["requests_in_flight", "open", row => whole(row.requests_in_flight), "w-count"],
  ["bytes_sent", "sent in all", row => bytes(row.bytes_sent), "w-size"],
  ["seconds", "age", row => time(row.seconds), "w-count"],
];

// `onNeed` is called when rows must be fetched, and `onOpen` when a connection is selected.
export class Table {
  constructor(onNeed, onOpen) {
    this.onNeed = onNeed;
    this.onOpen = onOpen;
    this.sort = "id";
    this.isDescending = true;
    this.filter = "";
    this.matching = 0;
    this.offset = 0;
    this.rows = [];
    this.cursor = { index: -1, id: null };
    this.watched = null;
    this.pool = [];
    this.scroll = by("scroll");
    this.makeHead();
    this.above = this.space();
    this.below = this.space();
    by("rows").append(this.above, this.below);
    let isDrawing = false;
    const draw = () => {
      if (isDrawing) return;
      isDrawing = true;
      requestAnimationFrame(() => { isDrawing = false; this.draw(); });
    };
    this.scroll.addEventListener("scroll", draw, { passive: true });
    new ResizeObserver(draw).observe(this.scroll);
    by("rows").addEventListener("click", event => {
      const index = this.pool.findIndex(line => line.element.contains(event.target));
      if (index >= 0) this.choose(this.first + index, true);
    });
  }

  makeHead() {
    for (const [key, title, , className, isUpwards] of COLUMNS) {
      const cell = make("th", undefined, className), button = make("button", title);
      cell.scope = "col";
      cell.dataset.key = key;
      button.type = "button";
      button.addEventListener("click", () => this.sortBy(key, !isUpwards));
      cell.append(button);
      by("head").append(cell);
    }
  }

  space() {
    const row = make("tr", undefined, "space"), cell = make("td");
    row.setAttribute("aria-hidden", "true");
    cell.colSpan = COLUMNS.length;
    row.append(cell);
    return row;
  }

  line() {
    const element = make("tr"), cells = COLUMNS.map(([, , , className]) => make("td", "", className));
    element.append(...cells);
    this.below.before(element);
    return { element, cells };
  }

  // Sorts by a column, or reverses the order if it is already sorted by it.
  sortBy(key, isDescending) {
    this.isDescending = this.sort === key ? !this.isDescending : isDescending;
    this.sort = key;
    this.restart();
  }

  filterBy(text) {
    this.filter = text;
    this.restart();
  }

  restart() {
    this.scroll.scrollTop = 0;
    this.cursor = { index: -1, id: null };
    this.onNeed();
  }

  get visible() {
    return Math.ceil(this.scroll.clientHeight / ROW) + 1;
  }

  get top() {
    return Math.max(0, Math.floor(this.scroll.scrollTop / ROW));
  }

  // The query for the visible rows, and for as many above and below them.
  query() {
    const count = Math.min(500, this.visible * 3 + 40);
    const offset = Math.max(0, this.top - Math.floor((count - this.visible) / 2));
    const parts = { sort: this.sort, order: this.isDescending ? "desc" : "asc", offset, count };
    if (this.filter) parts.filter = this.filter;
    return Object.entries(parts).map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
  }

  show(answer) {
    this.matching = answer.matching;
    this.offset = answer.offset;
    this.rows = answer.connections;
    const moved = this.rows.findIndex(row => row.id === this.cursor.id);
    if (moved >= 0) this.cursor.index = this.offset + moved;
    else if (this.cursor.index >= this.matching) this.cursor.index = this.matching - 1;
    for (const cell of by("head").children) {
      if (cell.dataset.key === this.sort) cell.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    by("table").setAttribute("aria-rowcount", this.matching + 1);
    this.draw();
  }

  // Displays the visible rows. Rows that have not arrived yet are blank.
  draw() {
    const last = Math.min(this.matching, this.top + this.visible + BEYOND);
    this.first = Math.max(0, Math.min(this.top - BEYOND, last));
    const shown = last - this.first;
    while (this.pool.length < shown) this.pool.push(this.line());
    while (this.pool.length > shown) this.pool.pop().element.remove();
    this.above.firstChild.style.height = this.first * ROW + "px";
    this.below.firstChild.style.height = (this.matching - last) * ROW + "px";
    let isMissing = false;
    this.pool.forEach(({ element, cells }, position) => {
      const index = this.first + position, row = this.rows[index - this.offset];
      isMissing ||= !row;
      element.id = "row-" + index;
      element.setAttribute("aria-rowindex", index + 2);
      const isCursor = index === this.cursor.index;
      element.classList.toggle("cursor", isCursor);
      element.classList.toggle("watched", Boolean(row) && row.id === this.watched);
      if (isCursor) element.setAttribute("aria-selected", "true");
      else element.removeAttribute("aria-selected");
      COLUMNS.forEach(([, , text], column) => write(cells[column], row ? text(row) : "\u00a0"));
    });
    if (isMissing) this.onNeed();
  }

  focus() {
    by("table").focus({ preventScroll: true });
  }

  // Moves the cursor to a row, and opens its connection if `isOpened`.
  choose(index, isOpened) {
    if (this.matching === 0) return;
    index = Math.max(0, Math.min(index, this.matching - 1));
    const row = this.rows[index - this.offset];
    this.cursor = { index, id: row ? row.id : null };
    const top = index * ROW, room = this.scroll.clientHeight - 2 * ROW;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top > this.scroll.scrollTop + room) this.scroll.scrollTop = top - room;
    this.draw();
    by("table").setAttribute("aria-activedescendant", "row-" + index);
    if (isOpened && row) this.onOpen(row.id);
  }

  move(step) {
    this.choose(this.cursor.index < 0 ? this.top : this.cursor.index + step, false);
  }

  open() {
    if (this.cursor.index >= 0) this.choose(this.cursor.index, true);
  }
}
