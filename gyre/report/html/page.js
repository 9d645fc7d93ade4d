// Puts the page together from its data.

const report = {data: JSON.parse(document.getElementById("data").textContent), curves: null, timelines: []};
window.gyre = report;  // for whoever looks in from a console, and tests

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
  redrawAll();
}

function addSection(id, title, ...content) {
  const parts = content.flat(Infinity).filter(part => part);
  if (parts.length === 0) return;
  document.getElementById("report").append(el("section", {id}, el("h2", {}, title), parts));
  document.getElementById("contents").append(el("a", {href: "#" + id}, title));
}

function build(data) {
  const names = data.studies.map(study => study.study).concat(data.runs.map(run => run.name));
  const title = names.length > 0 && names.length <= 3 ? names.join(", ") : "report";
  document.title = "gyre: " + title;
  document.getElementById("title").textContent = "gyre: " + title;
  document.getElementById("footer").textContent = `Made by gyre ${data.version}. Everything is in this file.`;
  if (data.notes.length > 0) {
    document.getElementById("report").append(el("div", {class: "notes", role: "note"}, data.notes.map(note => el("p", {}, note))));
  }
  addSection("studies", "Studies", data.studies.map(studyTables));
  addSection("overview", "Runs", data.runs.length > 0 ? overview(data.runs) : []);
  const curved = data.runs.filter(run => run.curves.length > 0);
  if (curved.length > 0) {
    report.curves = new Curves(curved);
    addSection("curves", "Curves", report.curves.element);
  }
  report.timelines = data.timelines.map(timeline => new Timeline(timeline));
  addSection("timelines", "Timeline", report.timelines.map(timeline => timeline.element));
  addSection("times", "Times, measured and predicted", timesTables(data));
  addSection("delays", "Delay and mismatch by stage", data.runs.filter(run => run.stages).map(delayTable));
  addSection("memory", "Memory", data.runs.filter(run => run.memory).map(memoryTable));
  addSection("configuration", "Configuration", data.runs.length > 0 ? configurationTables(data.runs) : []);
}

build(report.data);
document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;  // a phone's address bar comes and goes
  width = window.innerWidth;
  redrawAll();
});
// Paper is white, and shows what is folded.
window.addEventListener("beforeprint", () => {
  report.before = {theme: document.documentElement.dataset.theme, closed: [...document.querySelectorAll("details:not([open])")]};
  for (const details of report.before.closed) details.open = true;
  setTheme("light");
});
window.addEventListener("afterprint", () => {
  for (const details of report.before.closed) details.open = false;
  setTheme(report.before.theme);
});
