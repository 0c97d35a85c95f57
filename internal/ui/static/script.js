// The script of every page: the stream of changes, the filter, the keys. The pages work without it, by reloading.
"use strict";

const body = document.body;
const announce = document.getElementById("announce");
const filter = document.getElementById("filter");
const groups = document.getElementById("groups");

// ---- what changes

let stream;
let version = body.dataset.version;

function listen() {
  stream?.close();
  stream = new EventSource(`${body.dataset.root}/events?page=${body.dataset.page}&since=${encodeURIComponent(version)}`);
  stream.addEventListener("reload", () => { stream.close(); location.reload(); });
  stream.addEventListener("change", (event) => {
    version = event.lastEventId;
    apply(JSON.parse(event.data));
  });
  stream.addEventListener("open", () => { if (body.dataset.server === "gone") refresh(); delete body.dataset.server; });
  stream.addEventListener("error", () => {
    body.dataset.server = "gone";
    connection({ state: "lost", html: "<b>Not current</b>: <code>kubectl drydock ui</code> does not answer. Start it again." });
  });
}

// A browser opens only six connections to one address, so hidden pages close theirs.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream?.close();
  else listen();
});

function connection(news) {
  const was = body.dataset.connection;
  body.dataset.connection = news.state;
  document.getElementById("connection").innerHTML = news.html;
  if (was !== news.state) say(document.getElementById("connection").textContent);
}

function say(text) {
  announce.textContent = text;
}

// Changes are applied one after the other, and at most perFrame tiles per frame: thousands may change at once.
const perFrame = 400;
const frame = () => new Promise(requestAnimationFrame);
const coming = [];
let applying = false;
async function apply(change) {
  coming.push(change);
  if (applying) return;
  applying = true;
  try {
    while (coming.length > 0) await put(coming.shift());
  } finally { // an error must not block later changes
    applying = false;
  }
}

async function put(change) {
  if (change.connection) connection(change.connection);
  if (groups && change.density !== undefined && change.density !== groups.dataset.density) { location.reload(); return; }
  const said = [];
  const tiles = groups ? change.tiles ?? [] : [];
  for (let at = 0; at < tiles.length; at += perFrame) {
    if (at > 0) await frame();
    for (const tile of tiles.slice(at, at + perFrame)) {
      if (!place(tile)) return;
      said.push(tile.node + " is " + tile.state);
    }
  }
  for (const node of change.gone ?? []) if (drop(node)) said.push(node + " is gone");
  for (const [id, html] of Object.entries(change.parts ?? {})) replace(document.getElementById(id), html);
  if (said.length > 0) say(said.length > 5 ? said.length + " nodes changed" : said.join(", "));
  if (said.length > 0 || change.parts) sift();
  const nodes = new Set(change.nodes ?? []);
  if ([...document.querySelectorAll("[data-live]")].some((part) => change.force || (part.dataset.live === "*" ? nodes.size > 0 : nodes.has(part.dataset.live)))) refresh();
}

// replace sets the HTML of a part if it differs. It keeps the focus and the ticked boxes in the part.
const told = new Map();
function replace(part, html) {
  if (!part || told.get(part) === html) return;
  told.set(part, html);
  const focus = part.contains(document.activeElement) ? document.activeElement : null;
  const ticked = [...part.querySelectorAll("input:checked")].map((box) => box.id);
  part.innerHTML = html;
  for (const id of ticked) { const box = document.getElementById(id); if (box) box.checked = true; }
  if (focus?.id) document.getElementById(focus.id)?.focus();
  else if (focus) part.querySelector(`[href="${CSS.escape(focus.getAttribute("href"))}"]`)?.focus();
}

// refresh loads the page again and replaces each part with the attribute data-live: the name of a node, or "*" for all nodes.
let refreshing, again;
async function refresh() {
  if (refreshing) { again = true; return; }
  refreshing = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = page.getElementById(part.id);
      if (!next) continue;
      const open = new Set([...part.querySelectorAll("details[open]")].map((d) => d.id));
      for (const details of next.querySelectorAll("details")) if (open.has(details.id)) details.open = true;
      const focus = part.contains(document.activeElement) ? document.activeElement.id : "";
      part.replaceWith(next);
      if (focus) document.getElementById(focus)?.focus();
    }
  } finally {
    refreshing = false;
    if (again) { again = false; refresh(); }
  }
}

// ---- the tiles

// tiles has each node's tile, its list item, its text for the filter and whether the filter shows it, so that a key press needs no search in the document.
const tiles = new Map();
const order = new Intl.Collator("en", { numeric: true });
const before = (a, b) => (order.compare(a, b) || (a < b ? -1 : 1)) < 0;

function know(tile, group) {
  tiles.set(tile.dataset.node, { tile, item: tile.parentElement, group, text: findable(tile, group), hit: true });
}

function findable(tile, group) {
  const d = tile.dataset;
  return `${d.node} state:${d.state} zone:${group.dataset.zone} pool:${group.dataset.pool} policy:${d.policy ?? ""} step:${d.step ?? ""} reason:${d.reason ?? ""} ${tile.title}`.toLowerCase();
}

for (const group of groups?.querySelectorAll(".group") ?? []) {
  for (const tile of group.querySelectorAll("[data-node]")) {
    tile.tabIndex = -1;
    know(tile, group);
  }
}

// place updates a tile in its place, so that the focus and the other tiles stay. It returns false if it must load the page again.
function place(news) {
  const made = document.createElement("template");
  made.innerHTML = news.html;
  const item = made.content.firstElementChild;
  const tile = item.firstElementChild;
  const known = tiles.get(news.node);
  if (known?.group.dataset.group === news.group) {
    for (const { name } of [...known.tile.attributes]) if (name !== "tabindex" && !tile.hasAttribute(name)) known.tile.removeAttribute(name);
    for (const { name, value } of tile.attributes) known.tile.setAttribute(name, value);
    known.tile.replaceChildren(...tile.childNodes);
    known.text = findable(known.tile, known.group);
    known.tile.classList.add("changed");
    return true;
  }
  const group = [...groups.querySelectorAll(".group")].find((g) => g.dataset.group === news.group);
  if (!group) { location.reload(); return false; }
  if (known) drop(news.node);
  const list = group.querySelector(".tiles");
  const next = [...list.children].find((li) => before(news.node, li.firstElementChild.dataset.node));
  tile.tabIndex = -1;
  tile.classList.add("changed");
  list.insertBefore(item, next ?? null);
  know(tile, group);
  count(group);
  return true;
}

function drop(node) {
  const known = tiles.get(node);
  if (!known) return false;
  known.item.remove();
  tiles.delete(node);
  count(known.group);
  return true;
}

function count(group) {
  const n = group.querySelector(".tiles").children.length;
  group.querySelector("h2 small").textContent = n;
  if (n === 0) group.remove();
}

// Tab reaches only one tile; the arrow keys move between tiles.
let reached;
function reach(tile) {
  if (reached === tile) return;
  if (reached) reached.tabIndex = -1;
  reached = tile;
  if (reached) reached.tabIndex = 0;
}
groups?.addEventListener("focusin", (event) => reach(event.target.closest("[data-node]") ?? reached));

// ---- the filter: every word must be part of the name, the state, the zone, the pool, the policy, the step, the reason or the cause

// fewTiles is the limit of tiles for which squares have room for their names.
const fewTiles = 150;
let sifting;

function sift() {
  if (!filter) return;
  cancelAnimationFrame(sifting);
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const show = [];
  const shown = new Map();
  let hits = 0;
  for (const known of tiles.values()) {
    known.hit = words.every((word) => known.text.includes(word));
    if (known.hit) {
      hits++;
      shown.set(known.group, true);
      if (known.item.hidden) show.push(known.item);
    } else if (!known.item.hidden) known.item.hidden = true;
  }
  for (const group of groups.children) group.hidden = group.matches(".group") && !shown.has(group);
  groups.classList.toggle("few", words.length > 0 && hits <= fewTiles);
  uncover(show, 0);
  if (!reached?.isConnected || !tiles.get(reached.dataset.node)?.hit) reach(firstHit());
  const rows = [...document.querySelectorAll("#concern [data-of]")];
  for (const row of rows) row.hidden = tiles.get(row.dataset.of)?.hit === false;
  const table = document.querySelector("#concern .wide");
  if (table) table.hidden = rows.every((row) => row.hidden);
  for (const link of document.querySelectorAll("#counts a")) {
    if (new URL(link.href).searchParams.get("filter") === filter.value) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  document.getElementById("shown").textContent = words.length > 0 ? `${hits} of ${tiles.size} nodes` : "";
}

// uncover shows the items that the filter now finds, from the top, at most perFrame in each frame.
function uncover(items, from) {
  for (const item of items.slice(from, from + perFrame)) item.hidden = false;
  if (from + perFrame < items.length) sifting = requestAnimationFrame(() => uncover(items, from + perFrame));
}

const firstHit = () => groups.querySelector(".group:not([hidden]) li:not([hidden]) [data-node]");

if (filter) {
  const pointed = document.getElementById("pointed");
  filter.value = new URLSearchParams(location.search).get("filter") ?? "";
  filter.addEventListener("input", () => {
    const at = new URL(location.href);
    if (filter.value) at.searchParams.set("filter", filter.value);
    else at.searchParams.delete("filter");
    history.replaceState(null, "", at);
    pointed.textContent = "";
    sift();
  });
  document.getElementById("counts").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const wanted = new URL(link.href).searchParams.get("filter");
    filter.value = filter.value === wanted ? "" : wanted;
    filter.dispatchEvent(new Event("input"));
  });
  sift();
  // A square has no room for its node's name, so the bar above shows the name.
  const point = (event) => { pointed.textContent = event.target.closest("[data-node]")?.getAttribute("aria-label") ?? ""; };
  groups.addEventListener("pointerover", point);
  groups.addEventListener("focusin", point);
}

// ---- the keys

function move(key) {
  const here = tiles.get(document.activeElement?.dataset.node);
  const forward = key === "ArrowRight" || key === "ArrowDown";
  const to = !here ? firstHit() : key === "ArrowLeft" || key === "ArrowRight" ? beside(here, forward) : vertical(here, forward);
  to?.focus();
}

const lists = () => [...groups.querySelectorAll(".group:not([hidden]) .tiles")];
const hitsOf = (list) => [...list.children].filter((item) => !item.hidden);

// beside returns the tile before or after this one.
function beside(here, forward) {
  let item = here.item;
  do item = forward ? item.nextElementSibling : item.previousElementSibling; while (item?.hidden);
  if (item) return item.firstElementChild;
  const all = lists();
  const next = all[all.indexOf(here.item.parentElement) + (forward ? 1 : -1)];
  return next && hitsOf(next).at(forward ? 0 : -1).firstElementChild;
}

// vertical returns the tile in the same column of the row above or below. The grid's style gives the number of columns, so no tile is measured.
function vertical(here, forward) {
  const list = here.item.parentElement;
  const columns = getComputedStyle(list).gridTemplateColumns.split(" ").length;
  let row = hitsOf(list);
  const at = row.indexOf(here.item);
  const column = at % columns;
  let to = forward ? at + columns : at - columns;
  const lastRow = row.length - 1 - ((row.length - 1) % columns);
  if (forward && to >= row.length && at < lastRow) to = row.length - 1;
  if (to < 0 || to >= row.length) {
    const all = lists();
    const next = all[all.indexOf(list) + (forward ? 1 : -1)];
    if (!next) return here.tile;
    row = hitsOf(next);
    to = Math.min(row.length - 1, forward ? column : row.length - 1 - ((row.length - 1) % columns) + column);
  }
  return row[to].firstElementChild;
}

const help = document.getElementById("help");
document.getElementById("help-button")?.addEventListener("click", () => help.showModal());

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help?.open) return;
  const typing = document.activeElement?.matches("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape" && document.activeElement === filter) {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
    filter.blur();
  } else if (typing) {
    if (event.key === "ArrowDown" && document.activeElement === filter) { event.preventDefault(); move(event.key); }
  } else if (event.key === "/" && filter) {
    event.preventDefault();
    filter.focus();
    filter.select();
  } else if (event.key === "?") {
    event.preventDefault();
    help.showModal();
  } else if (event.key.startsWith("Arrow") && tiles.size > 0) {
    event.preventDefault();
    move(event.key);
  }
});

listen();
