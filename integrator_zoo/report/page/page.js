"use strict";

// ---- the table: a click on a heading sorts by it, another one turns it round

for (const table of document.querySelectorAll("table.results")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.firstElementChild.addEventListener("click", () => {
      const rising = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.value;
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b), rising)));
    });
  });
}

// numbers by size, words by alphabet, and what is missing last either way round
function compare(a, b, rising) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const order = isFinite(a) && isFinite(b) ? a - b : a.localeCompare(b, "en", { numeric: true });
  return rising ? order : -order;
}

// ---- the explorer

const CHARTS = JSON.parse(document.getElementById("charts").textContent);

// A Vega view in an element; its data sets are named in the specification.
function draw(element, specification) {
  element.view?.finalize();
  const compiled = vegaLite.compile(specification).spec;
  element.view = new vega.View(vega.parse(compiled), {
    renderer: "svg", container: element, logLevel: vega.Error,
  });
  return element.view;
}

function show(view, rows) {
  for (const [name, values] of Object.entries(rows)) view.data(name, values);
  return view.runAsync();
}

// The last of some rising numbers that is at most a limit; the first where none is.
function lastUpTo(numbers, limit) {
  let found = 0;
  while (found + 1 < numbers.length && numbers[found + 1] <= limit) found += 1;
  return found;
}

function distinct(numbers) {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

class Explorer {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(document.getElementById(root.dataset.explorer).textContent);
    const { subjects } = this.data;
    const curves = subjects.flatMap((one) => Object.values(one.curves));
    const paths = subjects.map((one) => one.path).filter(Boolean);

    this.across = paths[0]?.across ?? curves.find((one) => one.across === "sub-update")?.across;
    const stops = paths.length
      ? paths.map((one) => one.at).reduce((a, b) => (b.length > a.length ? b : a))
      : distinct(curves.filter((one) => one.across === this.across).flatMap((one) => one.x));
    const steps = [...paths, ...curves].flatMap((one) => one.steps);
    const trained = curves.filter((one) => one.across === "optimiser step").flatMap((one) => one.x);
    this.depth = this.slider("depth", stops);
    this.step = this.slider("step", distinct(steps.concat(trained)));

    root.querySelectorAll("fieldset input").forEach((box) => box.addEventListener("change", () => this.choose()));
    root.querySelectorAll("select").forEach((list) => list.addEventListener("change", () => this.choose()));
    this.choose();
  }

  // A slider over some stops, set to the last; hidden where there is nothing to slide over.
  slider(name, stops) {
    const label = this.root.querySelector(`[data-slider="${name}"]`);
    const [input, output] = [label.querySelector("input"), label.querySelector("output")];
    label.hidden = stops.length < 2;
    input.max = Math.max(stops.length - 1, 0);
    input.value = input.max;
    input.addEventListener("input", () => this.scrub());
    return {
      stops,
      output,
      get at() { return stops[input.value] ?? 0; },
      get last() { return stops[stops.length - 1] ?? 0; },
    };
  }

  get chosen() {
    return [...this.root.querySelectorAll("fieldset input:checked")].map((box) => +box.value);
  }

  // Draw what the chosen integrators need; the numbers follow in `scrub`.
  choose() {
    const chosen = new Set(this.chosen);
    for (const card of this.root.querySelectorAll("[data-subject]")) {
      card.hidden = !chosen.has(+card.dataset.subject);
      const chart = card.querySelector(".chart");
      const subject = this.data.subjects[card.dataset.subject];
      if (!card.hidden && chart && !chart.view) draw(chart, this.pathChart(subject));
    }
    for (const panel of this.root.querySelectorAll("[data-across]")) {
      draw(panel.querySelector(".chart"), this.curveChart(panel));
    }
    this.scrub();
  }

  scrub() {
    const word = this.across === "time" ? "time" : "sub-update";
    const shown = (value) => (Number.isInteger(value) ? value : value.toPrecision(4));
    this.depth.output.textContent = `${word} ${shown(this.depth.at)} of ${shown(this.depth.last)}`;
    this.step.output.textContent = `step ${this.step.at.toLocaleString("en")} of ${this.step.last.toLocaleString("en")}`;
    for (const index of this.chosen) {
      const chart = this.root.querySelector(`[data-subject="${index}"] .chart`);
      if (chart) show(chart.view, this.pathRows(this.data.subjects[index].path));
    }
    for (const panel of this.root.querySelectorAll("[data-across]")) {
      show(panel.querySelector(".chart").view, this.curveRows(panel));
    }
  }

  // Many points have the colours of their classes, a single one that of its integrator.
  pathChart({ path, place }) {
    const chart = structuredClone(CHARTS.path);
    for (const { mark, encoding } of chart.layer) {
      encoding.x.scale.domain = path.box[0];
      encoding.y.scale.domain = path.box[1];
      if (encoding.color && path.classes.length === 1) {
        encoding.color = { value: `var(--i${place})` };
        if (mark.type === "line") Object.assign(mark, { strokeWidth: 1.6, strokeOpacity: 0.9 });
      }
    }
    return chart;
  }

  pathRows(path) {
    const frame = path.frames[path.steps.length ? lastUpTo(path.steps, this.step.at) : 0];
    const until = lastUpTo(path.at, this.depth.at);
    const row = (node) => ([x, y], point) => ({ x, y, node, point, class: path.classes[point] });
    const ways = frame.slice(0, until + 1).flatMap((points, node) => points.map(row(node)));
    return {
      ways,
      starts: frame[0].map(row(0)),
      heads: frame[until].map(row(until)),
      exact: (path.exact ?? []).map(([x, y], node) => ({ x, y, node })),
    };
  }

  curveChart(panel) {
    const chart = structuredClone(CHARTS.curve);
    const log = panel.querySelector("select").selectedOptions[0].dataset.log !== undefined;
    const subjects = this.chosen.map((index) => this.data.subjects[index]);
    const labels = subjects.map((one) => one.label);
    const dashes = [[1, 0], [5, 2], [2, 2], [7, 2, 2, 2]];
    const repeats = subjects.map((one, i) => subjects.slice(0, i).filter((b) => b.place === one.place).length);
    for (const { encoding } of chart.layer) {
      if (encoding.y && log) encoding.y.scale = { type: "log" };
      if (encoding.color) encoding.color.scale = { domain: labels, range: subjects.map((one) => `var(--i${one.place})`) };
      if (encoding.strokeDash) encoding.strokeDash.scale = { domain: labels, range: repeats.map((n) => dashes[n % 4]) };
    }
    return chart;
  }

  curveRows(panel) {
    const { across } = panel.dataset;
    const heading = panel.querySelector("select").value;
    const here = across === this.across ? this.depth.at : across === "optimiser step" ? this.step.at : null;
    const lines = [];
    const values = [];
    for (const { label, curves } of this.chosen.map((index) => this.data.subjects[index])) {
      const curve = curves[heading];
      if (!curve) continue;
      const ys = curve.rows[curve.steps.length ? lastUpTo(curve.steps, this.step.at) : 0];
      const rows = curve.x.map((x, i) => ({ x, y: ys[i], label })).filter((row) => row.y !== null);
      lines.push(...rows);
      if (here !== null && rows.length && rows[0].x <= here) {
        values.push(rows[lastUpTo(rows.map((row) => row.x), here)]);
      }
    }
    return { lines, values, here: here === null || !lines.length ? [] : [{ x: here }] };
  }
}

document.querySelectorAll("[data-explorer]").forEach((root) => { root.explorer = new Explorer(root); });
