// The graph is drawn from the tables of its page; d3-force says where its circles are.

const svg = document.getElementById("graph");
const picked = document.getElementById("picked");
const ns = "http://www.w3.org/2000/svg";
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const least = 150; // from the middle to each side

if (svg && window.d3) draw();

function made(name, attributes) {
  const e = document.createElementNS(ns, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
}

function draw() {
  const nodes = [...document.querySelectorAll("#nodes tbody tr")].map((row) => ({
    id: row.dataset.id, name: row.cells[0].textContent, count: Number(row.dataset.count), near: new Set(),
  }));
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const links = [...document.querySelectorAll("#edges tbody tr")]
    .map((row) => ({ source: byId.get(row.dataset.from), target: byId.get(row.dataset.to), count: Number(row.dataset.count) }))
    .filter((l) => l.source && l.target && l.source !== l.target);
  for (const l of links) {
    l.source.near.add(l.target);
    l.target.near.add(l.source);
  }
  const largest = Math.max(1, ...nodes.map((n) => n.count));
  for (const n of nodes) n.r = 6 + 14 * Math.sqrt(n.count / largest);

  for (const l of links) {
    l.line = made("line", { class: "link", "stroke-width": 1 + Math.min(4, Math.log2(1 + l.count)) });
    svg.append(l.line);
  }
  for (const n of nodes) mark(n, nodes, links);

  const simulation = window.d3.forceSimulation(nodes)
    .force("link", window.d3.forceLink(links).distance(90))
    .force("charge", window.d3.forceManyBody().strength(-260))
    .force("x", window.d3.forceX().strength(0.06))
    .force("y", window.d3.forceY().strength(0.09))
    .force("collide", window.d3.forceCollide((n) => n.r + 10 + 3 * Math.min(n.name.length, 28)))
    .on("tick", () => place(nodes, links));
  if (still) {
    simulation.stop();
    simulation.tick(300);
    place(nodes, links);
  }
}

// mark draws a circle with its name, which can be chosen.
function mark(n, nodes, links) {
  n.g = made("g", { class: "node", tabindex: 0, role: "button", "aria-label": n.name });
  n.g.append(made("circle", { r: n.r }));
  const text = made("text", { x: n.r + 4, y: 4 });
  text.textContent = n.name.length > 28 ? n.name.slice(0, 27) + "…" : n.name;
  n.g.append(text);
  const choose = () => chosen(n, nodes, links);
  n.g.addEventListener("click", choose);
  n.g.addEventListener("focus", choose);
  n.g.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      e.preventDefault();
      chosen(null, nodes, links);
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      choose();
    }
  });
  svg.append(n.g);
}

function chosen(n, nodes, links) {
  for (const o of nodes) o.g.classList.toggle("far", n !== null && o !== n && !n.near.has(o));
  for (const l of links) l.line.classList.toggle("near", n !== null && (l.source === n || l.target === n));
  if (n === null) picked.textContent = "Choose a circle to see its connections.";
  else picked.textContent = n.name + (n.near.size ? ": connected with " + [...n.near].map((o) => o.name).join(", ") : ": no visible connections");
}

function place(nodes, links) {
  let [left, right, top, bottom] = [-least, least, -least, least];
  for (const n of nodes) {
    n.g.setAttribute("transform", `translate(${n.x} ${n.y})`);
    left = Math.min(left, n.x - n.r);
    right = Math.max(right, n.x + n.r + 8 * Math.min(n.name.length, 28));
    top = Math.min(top, n.y - n.r);
    bottom = Math.max(bottom, n.y + n.r);
  }
  svg.setAttribute("viewBox", `${left - 10} ${top - 10} ${right - left + 20} ${bottom - top + 20}`);
  for (const l of links) {
    for (const [key, value] of [["x1", l.source.x], ["y1", l.source.y], ["x2", l.target.x], ["y2", l.target.y]]) l.line.setAttribute(key, value);
  }
}
