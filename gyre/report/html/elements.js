// Helpers for the other files: creating elements, formatting numbers, and the page's colours.

// el("td", {class: "number"}, "3", child): creates an element. Strings become text, never markup.
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

// A table in a box that scrolls if the page is narrow. Cells are text, an element, or null.
function table(head, rows, numbersFrom = 1) {
  const cell = (tag, content, i) => el(tag, {class: i >= numbersFrom ? "number" : null}, content === null || content === undefined ? "" : content);
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "table"},
    el("table", {}, el("thead", {}, el("tr", {}, head.map((text, i) => cell("th", text, i)))),
      el("tbody", {}, rows.map(row => el("tr", {}, row.map((content, i) => cell("td", content, i)))))));
}

function finite(value) { return value !== null && value !== undefined && Number.isFinite(value); }

// 1234567 -> "1.235M", 0.00012 -> "1.2e-4", 9.63e16 -> "9.63e16": short enough for an axis.
function short(value) {
  if (!finite(value)) return "";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 999.95e9) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) return String(+(value / (name === "k" ? 1e3 : unit)).toPrecision(4)) + name;
  }
  if (size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(+value.toPrecision(4));
}
function percent(share) { return finite(share) ? (100 * share).toFixed(1) + "%" : ""; }
function bytes(count) {
  let unit = 0;
  for (; count >= 1024 && unit < 4; ++unit) count /= 1024;
  return (unit === 0 ? String(count) : count.toFixed(1)) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
}
function seconds(value) {
  if (!finite(value)) return "";
  if (value === 0) return "0";
  if (value < 1e-3) return +(value * 1e6).toPrecision(3) + " µs";
  if (value < 1) return +(value * 1e3).toPrecision(3) + " ms";
  if (value < 120) return +value.toPrecision(3) + " s";
  if (value < 7200) return +(value / 60).toPrecision(3) + " min";
  return +(value / 3600).toPrecision(4) + " h";
}

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

// Colours that people with colour blindness can tell apart (Okabe and Ito), readable on light and dark.
const kRunColours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c78a00", "#3d9bd1", "#7f7f7f", "#8a4fc4"];
function runColour(i) { return kRunColours[i % kRunColours.length]; }
// When the colours are used up, further runs are dashed.
function runDashes(i) { return i < kRunColours.length ? null : i < 2 * kRunColours.length ? [7, 4] : [2, 3]; }

// Functions that redraw canvases when the colours or the page's width change: element -> function, while it is in the
// page.
const kRedraws = new Map();
function redrawAll() { for (const [element, redraw] of kRedraws) if (element.isConnected) redraw(); else kRedraws.delete(element); }

// Replaces content that somebody may be reading: what is unfolded, scrolled or focused stays so.
function replaceContent(box, content) {
  const opened = new Map([...box.querySelectorAll("details")].map(details => [details.firstElementChild.textContent, details.open]));
  const moved = [...box.querySelectorAll(".scroll")].map(table => table.scrollLeft);
  const chosen = [...box.querySelectorAll("[tabindex], summary")].indexOf(document.activeElement);
  box.replaceChildren(...content);
  for (const details of box.querySelectorAll("details")) {
    const was = opened.get(details.firstElementChild.textContent);
    if (was !== undefined) details.open = was;
  }
  box.querySelectorAll(".scroll").forEach((table, i) => { if (moved[i]) table.scrollLeft = moved[i]; });
  const now = chosen >= 0 ? [...box.querySelectorAll("[tabindex], summary")][chosen] : null;
  if (now) now.focus({preventScroll: true});
}
