// Curves of several runs in common charts: one chart per quantity, drawn by Dygraphs. All charts share the horizontal
// axis, the range of it that is shown, and the choice of runs.

const kQuantities = [
  {name: "loss", title: "Training loss", log: true}, {name: "val_loss", title: "Validation loss", log: true},
  {name: "ema_val_loss", title: "Validation loss, averaged weights", log: true},
  {name: "lr", title: "Learning rate"}, {name: "grad_norm", title: "Gradient norm", log: true},
  {name: "tokens_per_second", title: "Tokens per second", log: true}];
const kAxes = {step: "updates", tokens: "tokens", hours: "hours"};

function axisValues(curve, axis) { return axis === "hours" ? curve.seconds.map(s => s / 3600) : curve[axis]; }

// What Dygraphs calls the curve of a run. Not the run's name: __proto__, as a key, would be none.
function seriesOf(run) { return "run " + run; }

// The index of the value nearest to x in a sorted list.
function nearestIndex(values, x) {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - values[low - 1] < values[low] - x ? low - 1 : low;
}

class Curves {
  constructor(runs) {
    this.runs = runs;
    this.axis = "step";
    this.log = false;
    this.shown = runs.map(() => true);
    this.charts = [];
    this.window = null;
    this.element = el("div");
    this.select = el("select", {"aria-label": "Axis", onchange: event => { this.axis = event.target.value; this.window = null; this.draw(); }},
      Object.entries(kAxes).map(([value, text]) => el("option", {value}, text)));
    this.logBox = el("input", {type: "checkbox", onchange: event => { this.log = event.target.checked; this.draw(); }});
    this.boxes = runs.map((run, i) => el("input", {type: "checkbox", checked: true, onchange: event => { this.shown[i] = event.target.checked; this.draw(); }}));
    this.element.append(el("div", {class: "controls"},
      el("label", {}, "by", this.select),
      el("label", {}, this.logBox, "logarithmic"),
      el("button", {type: "button", onclick: () => this.show(null)}, "Whole")));
    this.element.append(el("div", {class: "controls", role: "group", "aria-label": "Runs"}, runs.map((run, i) =>
      el("label", {}, this.boxes[i],
        el("span", {class: "swatch", style: `border-color:${runColour(i)};border-top-style:${runDashes(i) ? "dashed" : "solid"}`}), run.name))));
    this.element.append(el("p", {class: "faint hint"},
      "Drag or turn the wheel to zoom, drag with Shift to move, double click for the whole. Keys on a chart: + − ← → 0."));
    this.place = el("div", {class: "charts"});
    this.element.append(this.place);
    for (const quantity of kQuantities) {
      const curves = runs.map(run => run.curves.find(curve => curve.name === quantity.name));
      if (curves.some(curve => curve)) this.add(quantity, curves);
    }
    kRedraws.set(this.element, () => this.draw());
  }

  // Takes more points of the same runs; the range that is shown stays. Returns false if runs or quantities have
  // changed.
  update(runs) {
    const names = list => list.map(run => run.name + ":" + run.curves.map(curve => curve.name).join()).join("\n");
    if (names(runs) !== names(this.runs)) return false;
    this.runs = runs;
    for (const chart of this.charts) {
      chart.curves = runs.map(run => run.curves.find(curve => curve.name === chart.quantity.name));
      chart.graph.updateOptions({file: this.rows(chart), dateWindow: this.window || this.whole(), valueRange: null, drawPoints: this.hasFewPoints(chart)});
      this.read(chart, chart.readAt);
    }
    return true;
  }
  // Takes over the view of another object, which had fewer runs or quantities.
  showAs(other) {
    this.axis = this.select.value = other.axis;
    this.log = this.logBox.checked = other.log;
    this.window = other.window;
    this.runs.forEach((run, i) => {
      const was = other.runs.findIndex(before => before.name === run.name);
      if (was >= 0) this.shown[i] = this.boxes[i].checked = other.shown[was];
    });
  }

  add(quantity, curves) {
    const plot = el("div", {class: "plot", tabindex: "0", role: "img", "aria-label": quantity.title});
    const readout = el("div", {class: "readout", role: "status"});
    const chart = {quantity, curves, plot, readout, graph: null, readAt: null};
    this.place.append(el("section", {class: "chart"}, el("h3", {}, quantity.title), readout, plot));
    plot.addEventListener("wheel", event => {
      event.preventDefault();
      const [x] = chart.graph.eventToDomCoords(event);
      this.zoom(chart.graph, event.deltaY < 0 ? 0.8 : 1.25, chart.graph.toDataXCoord(x));
    }, {passive: false});
    plot.addEventListener("keydown", event => {
      const [low, high] = chart.graph.xAxisRange();
      const move = share => this.show([low + share * (high - low), high + share * (high - low)]);
      const keys = {"+": () => this.zoom(chart.graph, 0.7), "=": () => this.zoom(chart.graph, 0.7), "-": () => this.zoom(chart.graph, 1.4),
        "0": () => this.show(null), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2)};
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    this.charts.push(chart);
  }

  // Rows in Dygraphs' form: x, and a value or null for each run.
  rows(chart) {
    const values = new Map();
    chart.curves.forEach((curve, run) => {
      if (!curve) return;
      axisValues(curve, this.axis).forEach((x, i) => {
        if (!values.has(x)) values.set(x, new Array(this.runs.length).fill(null));
        values.get(x)[run] = curve.value[i];
      });
    });
    return [...values.entries()].sort((a, b) => a[0] - b[0]).map(([x, row]) => [x, ...row]);
  }

  hasFewPoints(chart) { return chart.curves.every(curve => !curve || curve.value.length < 60); }

  draw() {
    for (const chart of this.charts) {
      const options = {
        labels: [kAxes[this.axis], ...this.runs.map((run, i) => seriesOf(i))], colors: this.runs.map((run, i) => runColour(i)),
        visibility: this.shown, connectSeparatedPoints: true, legend: "never", strokeWidth: 1.6, drawPoints: this.hasFewPoints(chart), pointSize: 2.5,
        highlightCircleSize: 4, logscale: this.log && !!chart.quantity.log, gridLineColor: colour("line"), axisLineColor: colour("line"),
        axisLabelFontSize: 12, rightGap: 24, dateWindow: this.window || this.whole(), valueRange: null,
        series: Object.fromEntries(this.runs.map((run, i) => [seriesOf(i), {strokePattern: runDashes(i)}])),
        axes: {x: {axisLabelFormatter: short, pixelsPerLabel: 80, axisLabelWidth: 70},
               y: {axisLabelFormatter: short, pixelsPerLabel: 34, axisLabelWidth: 62}},
        highlightCallback: (event, x) => this.read(chart, x), unhighlightCallback: () => this.read(chart, null),
        zoomCallback: (low, high) => {
          const [first, last] = chart.graph.xAxisExtremes();
          this.show(low <= first && high >= last ? null : [low, high]);
        },
        interactionModel: this.interaction()};
      if (chart.graph) chart.graph.destroy();
      chart.graph = new Dygraph(chart.plot, this.rows(chart), options);
      this.read(chart, null);
    }
  }

  // Dygraphs' own interaction model, except that one finger scrolls the page.
  interaction() {
    const own = Dygraph.defaultInteractionModel;
    return {...own, touchstart: (event, graph, context) => { if (event.touches.length > 1) own.touchstart(event, graph, context); }};
  }

  zoom(graph, factor, about) {
    const [low, high] = graph.xAxisRange();
    const centre = about === undefined ? (low + high) / 2 : about;
    this.show([centre - (centre - low) * factor, centre + (high - centre) * factor]);
  }

  // The range of the axis that all charts show; null for the whole axis.
  show(range) {
    this.window = range;
    for (const chart of this.charts) chart.graph.updateOptions({dateWindow: range || this.whole(), valueRange: null});
  }
  whole() {
    const ends = this.charts.flatMap(chart => chart.curves).filter(curve => curve).map(curve => axisValues(curve, this.axis)).flatMap(values => [values[0], values[values.length - 1]]);
    const low = Math.min(...ends), high = Math.max(...ends);
    return [low, high > low ? high : low + 1];
  }

  // The runs' values at x; without x, their last values.
  read(chart, x) {
    chart.readAt = x;
    const parts = [];
    chart.curves.forEach((curve, i) => {
      if (!curve || !this.shown[i]) return;
      const values = axisValues(curve, this.axis);
      const at = x === null ? values.length - 1 : nearestIndex(values, x);
      parts.push(el("span", {class: "of-run"}, el("span", {class: "swatch", style: `border-color:${runColour(i)};vertical-align:middle`}), " ",
        `${this.runs.length > 1 ? this.runs[i].name + ": " : ""}${+curve.value[at].toPrecision(6)} at ${this.axis === "hours" ? +values[at].toPrecision(4) : values[at]} ${kAxes[this.axis]}`));
    });
    chart.readout.replaceChildren(...parts);
  }
}
