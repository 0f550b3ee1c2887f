"use strict";
// Draws the data of the page: the graph, what is known of the box that is selected, the tables and the plots.

const data = JSON.parse(document.getElementById("data").textContent);
const FAR = 0.45; // smaller than this, the text of a node can't be read
const STAGES = ["torch", "linalg", "region", "schedule", "kernel", "gpu", "nvvm", "llvm", "ptx"];
const COLORS = ["#3b82f6", "#f59e0b", "#10b981", "#8b5cf6"];
const state = { graph: null, box: null, stage: "ptx", x: 0, y: 0, k: 1, hits: [], hit: -1 };
const find = (id) => document.getElementById(id);
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const grouped = (n) => (n === null ? "unknown" : n.toLocaleString("en-US"));
const clip = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const hue = (region) => `hsl(${(region * 137) % 360} 65% 55%)`;

function seconds(value) {
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([s]) => value >= s) ?? [1e-9, "ns"];
  return `${Number((value / scale).toPrecision(3))} ${unit}`;
}

function showGraph(number) {
  state.graph = data.graphs[number];
  state.box = null;
  for (const button of find("graphs").children) button.setAttribute("aria-pressed", button.dataset.number === String(number));
  find("about").textContent = state.graph.about;
  find("comparison").innerHTML = state.graph.comparison;
  drawGraph();
  drawTables();
  find("memory").innerHTML = memoryPlot(state.graph);
  find("roofline").innerHTML = rooflinePlot(state.graph);
  fit();
  select(state.graph.boxes.findIndex((box) => box.kind === "kernel"), false);
}

function drawGraph() {
  const { nodes, boxes, edges } = state.graph;
  const parts = [];
  edges.forEach(([from, to], number) => {
    const [a, b] = [nodes[from], nodes[to]];
    const [x1, y1, x2, y2] = [a.x + a.w / 2, a.y + a.h, b.x + b.w / 2, b.y];
    const bend = Math.max(12, (y2 - y1) / 2);
    const kind = a.box === b.box ? "edge inner" : "edge";
    parts.push(`<path class="${kind}" data-edge="${number}" d="M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}"/>`);
  });
  const inside = boxes.map(() => []);
  nodes.forEach((node, number) => inside[node.box].push(
    `<g class="node" data-node="${number}"><rect x="${node.x}" y="${node.y}" width="${node.w}" height="${node.h}" rx="4"/>` +
    `<text x="${node.x + 6}" y="${node.y + 13}">${escape(clip(node.label, 20))}</text>` +
    `<text class="type" x="${node.x + 6}" y="${node.y + 25}">${escape(clip(node.type, 24))}</text>` +
    `<title>${escape(`${node.label} ${node.type}\n${node.lines.join("\n")}`)}</title></g>`));
  boxes.forEach((box, number) => {
    const fill = box.kind === "kernel" && box.region !== null ? ` style="fill:${hue(box.region)}"` : "";
    parts.push(`<g class="box ${box.kind}" data-box="${number}"><rect${fill} x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="8"/>` +
      `<text class="name" x="${box.x + 10}" y="${box.y + 18}">${escape(clip(box.name, Math.max(16, box.w / 7)))}</text>${inside[number].join("")}</g>`);
  });
  find("world").innerHTML = parts.join("");
}

function move() {
  find("world").setAttribute("transform", `translate(${state.x} ${state.y}) scale(${state.k})`);
  find("graph").classList.toggle("far", state.k < FAR);
}

function fit() {
  const view = find("graph").getBoundingClientRect();
  state.k = Math.min(1.5, 0.95 * Math.min(view.width / state.graph.width, view.height / state.graph.height));
  state.k = Math.max(state.k, 0.02);
  state.x = (view.width - state.graph.width * state.k) / 2;
  state.y = Math.max(8, (view.height - state.graph.height * state.k) / 2);
  move();
}

function zoom(factor, x, y) {
  const k = Math.min(4, Math.max(0.005, state.k * factor));
  state.x = x - ((x - state.x) * k) / state.k;
  state.y = y - ((y - state.y) * k) / state.k;
  state.k = k;
  move();
}

function center(place) {
  const view = find("graph").getBoundingClientRect();
  state.k = Math.max(state.k, 0.8);
  state.x = view.width / 2 - (place.x + place.w / 2) * state.k;
  state.y = view.height / 2 - (place.y + Math.min(place.h, view.height / state.k) / 2) * state.k;
  move();
}

function select(number, centered) {
  if (number < 0) return showFacts(null);
  state.box = number;
  for (const old of document.querySelectorAll(".box.selected, tr.selected")) old.classList.remove("selected");
  for (const old of document.querySelectorAll(".edge.near")) old.classList.remove("near");
  for (const one of document.querySelectorAll(`.box[data-box="${number}"], tr[data-box="${number}"]`)) one.classList.add("selected");
  state.graph.edges.forEach(([from, to], edge) => {
    const [a, b] = [state.graph.nodes[from].box, state.graph.nodes[to].box];
    if (a !== b && (a === number || b === number)) find("world").children[edge].classList.add("near");
  });
  const box = state.graph.boxes[number];
  showFacts(box);
  if (centered) center(box);
}

function showFacts(box) {
  find("name").textContent = box ? box.name : "nothing to show";
  if (!box) return;
  const apart = state.graph.apart.filter(([a, b]) => a === state.box || b === state.box)
    .map(([a, b, reason]) => `not one with ${escape(state.graph.boxes[a === state.box ? b : a].name)}: ${escape(reason)}`);
  const facts = [`${box.kind}${box.region === null ? "" : `, region ${box.region}`}`];
  if (box.family) facts.push(`schedule ${escape(box.family)}: ${escape(box.why)}`);
  if (box.reason) facts.push(`in a library: ${escape(box.reason)}`);
  if (box.kind !== "view") facts.push(`${grouped(box.ops)} operations, ${grouped(box.bytes)} bytes, ${grouped(box.flops)} flops, at least ${seconds(box.seconds)}`);
  facts.push(...apart, `<span class="dim">${box.lines.map(escape).join("<br>")}</span>`);
  find("facts").innerHTML = facts.join("<br>");
  const known = STAGES.filter((stage) => stage in box.stages);
  const stage = known.includes(state.stage) ? state.stage : known[known.length - 1];
  find("stages").innerHTML = known.map((one) => `<button data-stage="${one}" aria-pressed="${one === stage}">${one}</button>`).join("");
  find("text").textContent = data.texts[box.stages[stage]];
}

function drawTables() {
  const { boxes, apart } = state.graph;
  const cells = (values) => values.map((value) => `<td>${escape(value)}</td>`).join("");
  const row = (box, number, values) => `<tr data-box="${number}">${cells(values)}</tr>`;
  const numbered = boxes.map((box, number) => [box, number]);
  const kernels = numbered.filter(([box]) => box.kind === "kernel")
    .map(([b, n]) => row(b, n, [b.name, b.region ?? "", b.family, grouped(b.ops), grouped(b.bytes), grouped(b.flops), seconds(b.seconds), b.why]));
  const calls = numbered.filter(([box]) => box.kind === "call")
    .map(([b, n]) => row(b, n, [b.name, grouped(b.bytes), grouped(b.flops), seconds(b.seconds), b.reason]));
  const table = (headings, rows) => `<div class="rows"><table><thead><tr>${headings.map((h) => `<th>${h}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
  find("kernels").innerHTML = table(["kernel", "region", "schedule", "ops", "bytes", "flops", "least time", "why"], kernels);
  find("calls").innerHTML = calls.length ? table(["call", "bytes", "flops", "least time", "why a library"], calls) : "none";
  const reasons = apart.map(([a, b, reason]) => `<tr data-box="${b}">${cells([boxes[a].name, boxes[b].name, reason])}</tr>`);
  find("apart").innerHTML = reasons.length ? table(["kernel", "reads it", "why they are two"], reasons) : "nothing";
}

function ticks(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.floor(Math.log10(high)); power++) found.push(10 ** power);
  return found;
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

function memoryPlot(graph) {
  const [width, height, left, bottom] = [600, 300, 70, 250];
  const most = Math.max(graph.eager ?? 0, ...graph.timelines.map(({ values }) => values.reduce((a, b) => Math.max(a, b), 0)), 1);
  const y = (value) => bottom - (value / most) * (bottom - 20);
  const parts = [`<path class="axis" d="M${left} 20V${bottom}H${width - 10}"/>`];
  for (const part of [0, 0.5, 1]) parts.push(`<text x="4" y="${y(part * most) + 4}">${bytes(part * most)}</text>`);
  graph.timelines.forEach(({ name, values }, number) => {
    const x = (step) => left + (step / Math.max(1, values.length)) * (width - left - 10);
    const steps = values.map((value, step) => `${step ? "V" : `M${left} ${bottom}V`}${y(value).toFixed(1)}H${x(step + 1).toFixed(1)}`);
    parts.push(`<path fill="none" stroke="${COLORS[number]}" stroke-width="2" d="${steps.join("")}"><title>${name}</title></path>`);
    parts.push(`<text x="${left + number * 130}" y="${height - 8}" style="fill:${COLORS[number]}">${name}: ${bytes(Math.max(0, values.reduce((a, b) => Math.max(a, b), 0)))}</text>`);
  });
  if (graph.eager !== null) {
    parts.push(`<path stroke="${COLORS[3]}" stroke-dasharray="6 4" d="M${left} ${y(graph.eager)}H${width - 10}"/>`);
    parts.push(`<text x="${left + 390}" y="${height - 8}" style="fill:${COLORS[3]}">eager's peak: ${bytes(graph.eager)}</text>`);
  }
  parts.push(`<text x="${left}" y="${height - 26}">launches and calls, from the first to the last</text>`);
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="bytes alive over time">${parts.join("")}</svg>`;
}

function rooflinePlot(graph) {
  const [width, height, left, right, top, bottom] = [600, 300, 70, 590, 20, 250];
  const { bandwidth, flops } = graph.limits; // bytes and operations a second
  const [low, high] = [0.01, 10000];
  const [least, most] = [low * bandwidth, Math.max(flops * 2, bandwidth)];
  const x = (v) => left + (Math.log10(v / low) / Math.log10(high / low)) * (right - left);
  const y = (v) => bottom - (Math.log10(v / least) / Math.log10(most / least)) * (bottom - top);
  const knee = flops / bandwidth;
  const parts = [`<path class="axis" d="M${left} ${top}V${bottom}H${right}"/>`,
    `<path fill="none" stroke="${COLORS[0]}" stroke-width="2" d="M${x(low)} ${y(least)}L${x(knee)} ${y(flops)}H${right}"/>`];
  for (const tick of ticks(low, high)) parts.push(`<text x="${x(tick) - 8}" y="${bottom + 16}">${tick}</text>`);
  for (const tick of ticks(least, most)) parts.push(`<text x="4" y="${y(tick) + 4}">${(tick / 1e12).toPrecision(1)} T/s</text>`);
  const total = graph.boxes.reduce((sum, box) => sum + box.seconds, 0) || 1;
  graph.boxes.forEach((box, number) => {
    if (box.kind !== "kernel" || !box.flops || !box.bytes) return;
    const intensity = Math.min(high, Math.max(low, box.flops / box.bytes));
    const radius = 3 + 14 * Math.sqrt(box.seconds / total);
    parts.push(`<circle data-box="${number}" cx="${x(intensity)}" cy="${y(Math.min(flops, intensity * bandwidth))}" r="${radius}" fill="${hue(box.region ?? 0)}" fill-opacity=".6"><title>${escape(box.name)}: ${intensity.toPrecision(3)} flops a byte</title></circle>`);
  });
  parts.push(`<text x="${left}" y="${height - 8}">flops a byte; area: share of the least time; the line: ${(bandwidth / 1e12).toPrecision(3)} TB/s and ${(flops / 1e12).toPrecision(3)} Tflop/s</text>`);
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="roofline">${parts.join("")}</svg>`;
}

function search(text) {
  const wanted = text.trim().toLowerCase();
  for (const old of document.querySelectorAll(".node.hit")) old.classList.remove("hit");
  const { nodes, boxes } = state.graph;
  const matches = (node) => [node.label, node.type, boxes[node.box].name, ...node.lines].some((one) => one.toLowerCase().includes(wanted));
  state.hits = wanted ? nodes.flatMap((node, number) => (matches(node) ? [number] : [])) : [];
  state.hit = -1;
  for (const number of state.hits) document.querySelector(`.node[data-node="${number}"]`).classList.add("hit");
  find("found").textContent = wanted ? `${state.hits.length} found` : "";
}

function nextHit() {
  if (!state.hits.length) return;
  state.hit = (state.hit + 1) % state.hits.length;
  const node = state.graph.nodes[state.hits[state.hit]];
  select(node.box, false);
  center(node);
}

function listen() {
  const svg = find("graph");
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY, moved: false }; });
  svg.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    Object.assign(held, { x: event.clientX, y: event.clientY, moved: true });
    state.x += dx;
    state.y += dy;
    move();
  });
  svg.addEventListener("click", (event) => {
    const box = event.target.closest(".box");
    if (box && !held?.moved) select(Number(box.dataset.box), false);
  });
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const view = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - view.left, event.clientY - view.top);
  }, { passive: false });
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-box], circle[data-box]");
    if (row) select(Number(row.dataset.box), true);
  });
  find("stages").addEventListener("click", (event) => {
    if (!event.target.dataset.stage) return;
    state.stage = event.target.dataset.stage;
    showFacts(state.graph.boxes[state.box]);
  });
  find("graphs").addEventListener("click", (event) => { if (event.target.dataset.number) showGraph(Number(event.target.dataset.number)); });
  find("search").addEventListener("input", (event) => search(event.target.value));
  find("search").addEventListener("keydown", (event) => { if (event.key === "Enter") nextHit(); });
  find("fit").addEventListener("click", fit);
  const middle = (factor) => () => zoom(factor, svg.clientWidth / 2, svg.clientHeight / 2);
  find("closer").addEventListener("click", middle(1.4));
  find("farther").addEventListener("click", middle(1 / 1.4));
}

find("graphs").innerHTML = data.graphs.map((graph, number) => `<button data-number="${number}">${escape(graph.title)}</button>`).join(" ");
listen();
showGraph(0);
document.body.dataset.ready = "yes";
