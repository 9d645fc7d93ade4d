// Builds the page from its data: embedded in the page or, if gyre serve shows it, requested repeatedly (live.js).

const report = {data: JSON.parse(document.getElementById("data").textContent), curves: null, timelines: []};
window.gyre = report;  // for use from a console, and for tests

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
  redrawAll();
}

// A part of the page: shown while it has content, and rebuilt when its data has changed.
class Section {
  constructor(id, title) {
    this.title = title;
    this.made = null;
    this.isHeld = false;  // its data has changed, but somebody has selected text in it
    this.problem = null;  // why it could not be drawn
    this.body = el("div");
    this.element = el("section", {id, hidden: true}, el("h2", {}, title), this.body);
    this.link = el("a", {href: "#" + id, hidden: true}, title);
    document.getElementById("report").append(this.element);
    document.getElementById("contents").append(this.link);
  }
  // `of`: the data from which `make` builds it.
  show(of, make) {
    const key = JSON.stringify(of), selection = document.getSelection();
    this.isHeld = key !== this.made && !selection.isCollapsed && this.body.contains(selection.anchorNode);
    if (key === this.made || this.isHeld) return;
    this.place([make()]);
    this.made = key;
  }
  // Calls `draw`. An error in one section must not hide the others: it is said where the section would be.
  attempt(draw) {
    this.problem = null;
    try {
      draw(this);
    } catch (error) {
      console.error(error);
      this.made = null;
      this.problem = `${this.title}: ${error.message}`;
      this.place([el("p", {class: "notes"}, `This part cannot be drawn: ${error.message}`)]);
    }
  }
  place(content) {
    const parts = content.flat(Infinity).filter(part => part);
    replaceContent(this.body, parts);
    this.element.hidden = this.link.hidden = parts.length === 0;
  }
}

const kNotes = document.getElementById("report").appendChild(el("div"));
const kSections = Object.fromEntries([["studies", "Studies"], ["overview", "Runs"], ["curves", "Curves"], ["timelines", "Timeline"], ["times", "Times, measured and predicted"],
  ["delays", "Delay and mismatch by stage"], ["memory", "Memory"], ["configuration", "Configuration"]].map(([id, title]) => [id, new Section(id, title)]));

function showCurves(runs) {
  const curved = runs.filter(run => run.curves.length > 0), before = report.curves;
  if (curved.length > 0 && before && before.element.isConnected && before.update(curved)) return;
  report.curves = curved.length > 0 ? new Curves(curved) : null;
  if (before && report.curves) report.curves.showAs(before);
  kSections.curves.place(report.curves ? [report.curves.element] : []);
  if (report.curves) report.curves.draw();
}

function showTimelines(timelines) {
  const before = new Map(report.timelines.map(timeline => [timeline.data.name, timeline]));
  report.timelines = timelines.map(data => {
    const old = before.get(data.name);
    if (old && JSON.stringify(old.data) === JSON.stringify(data)) return old;
    const timeline = new Timeline(data);
    if (old && old.to - old.from < old.length) timeline.show(old.from, old.to);
    return timeline;
  });
  if (report.timelines.every(timeline => timeline.element.isConnected) && report.timelines.length === before.size) return;
  kSections.timelines.place(report.timelines.map(timeline => timeline.element));
  for (const timeline of report.timelines) timeline.drawSoon();
}

// Returns whether a section must be shown later, since text in it is selected, and which could not be drawn.
function show(data) {
  report.data = data;
  const names = data.studies.map(study => study.study).concat(data.runs.map(run => run.name));
  const title = names.length > 0 && names.length <= 3 ? names.join(", ") : "report";
  document.title = "gyre: " + title;
  document.getElementById("title").textContent = "gyre: " + title;
  kNotes.replaceChildren(...(data.notes.length > 0 ? [el("div", {class: "notes", role: "note"}, data.notes.map(note => el("p", {}, note)))] : []));
  const without = runs => runs.map(({curves, ...others}) => others), lasts = () => data.runs.map(run => run.curves.map(curve => lastOf(run, curve.name)));
  const draws = {
    studies: section => section.show(data.studies, () => data.studies.map(studyTables)),
    overview: section => section.show([without(data.runs), lasts()], () => data.runs.length > 0 ? overview(data.runs) : []),
    curves: () => showCurves(data.runs),
    timelines: () => showTimelines(data.timelines),
    times: section => section.show([data.runs.map(run => [run.name, run.predicted, run.costs, run.end, run.predicted && lastOf(run, "tokens_per_second")]), data.timelines.map(timeline => [timeline.name, timeline.means])], () => timesTables(data)),
    delays: section => section.show(data.runs.map(run => [run.name, run.stages]), () => data.runs.filter(run => run.stages).map(delayTable)),
    memory: section => section.show(data.runs.map(run => [run.name, run.memory, run.measured_memory]), () => data.runs.filter(run => run.memory || run.measured_memory).map(memoryOf)),
    configuration: section => section.show(data.runs.map(run => [run.name, run.config]), () => data.runs.length > 0 ? configurationTables(data.runs) : []),
  };
  for (const [id, draw] of Object.entries(draws)) kSections[id].attempt(draw);
  const sections = Object.values(kSections);
  return {isHeld: sections.some(section => section.isHeld), problems: sections.filter(section => section.problem).map(section => section.problem)};
}

setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.getElementById("footer").textContent = report.data.live ? `Served by gyre ${report.data.version}.` : `Made by gyre ${report.data.version}. Everything is in this file.`;
if (report.data.live) new Live().follow(); else show(report.data);
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;  // only the height changed, as when a phone's address bar hides
  width = window.innerWidth;
  redrawAll();
});
// When printed, the page is light, and folded parts are open.
window.addEventListener("beforeprint", () => {
  report.before = {theme: document.documentElement.dataset.theme, closed: [...document.querySelectorAll("details:not([open])")]};
  for (const details of report.before.closed) details.open = true;
  setTheme("light");
});
window.addEventListener("afterprint", () => {
  for (const details of report.before.closed) details.open = false;
  setTheme(report.before.theme);
});
