// Tables of the report: runs, delays, memory, times, configuration, studies.

function histogram(pairs) {
  const all = pairs.reduce((sum, [, count]) => sum + count, 0);
  const mean = pairs.reduce((sum, [value, count]) => sum + value * count, 0) / Math.max(1, all);
  return {mean, max: pairs.length > 0 ? pairs[pairs.length - 1][0] : 0, text: pairs.map(([value, count]) => `${value}: ${percent(count / all)}`).join(", ")};
}

function lastOf(run, name) {
  const curve = run.curves.find(curve => curve.name === name);
  return curve ? curve.value[curve.value.length - 1] : null;
}

// Speed, waiting and time are those of all sessions of a run. While it trains, its speed is that of the last updates.
function overview(runs) {
  const lastLoss = run => {
    const curve = run.curves.find(curve => curve.name === "loss");
    return curve && curve.step[curve.step.length - 1] < run.steps ? "not finite" : short(lastOf(run, "loss"));
  };
  const head = ["run", "status", "schedule", "stages", "workers", "weights", "executor", "updates", "last loss", "validation loss", "tokens/s", "waiting", "trained for"];
  return table(head, runs.map(run => [
    run.name, run.end ? run.end.status : run.steps > 0 ? "not ended" : "not begun", run.schedule ? run.schedule.name : "",
    run.schedule ? String(run.schedule.stages) : "", run.schedule ? String(run.schedule.workers) : "", run.weights || "", run.executor,
    `${run.steps}\u00a0of\u00a0${run.updates}`, lastLoss(run), short(lastOf(run, "val_loss")),
    short(run.end ? run.totals.tokens_per_second : lastOf(run, "tokens_per_second")), percent(run.totals.bubble_fraction),
    run.steps > 0 ? seconds(run.totals.seconds) : ""]), 7);
}

function delayTable(run) {
  const measured = run.stages.every(stage => stage.measured);
  const rows = run.stages.map((stage, i) => {
    const delay = histogram(stage.delay), mismatch = histogram(stage.mismatch);
    return [`stage ${i}`, delay.mean.toFixed(2), delay.text, mismatch.mean.toFixed(2), mismatch.text];
  });
  return [el("h3", {}, run.name), el("p", {class: "faint"}, measured
    ? "Delays as the run saw them, in updates; the mismatch is the schedule's, which the run was held to."
    : "By the schedule, in updates; the run has not recorded its own yet."),
    table(["", "mean delay", "delay: share of microbatches", "mean mismatch", "mismatch: share"], rows)];
}

const kMemoryParts = [["weights", "forward"], ["gradients", "backward"], ["received", "wait-link"], ["optimizer", "update"], ["activations", "adopt"], ["passing", "other-slice"]];

// The peak memory of the run's processes, beside the prediction for all workers together.
function measuredMemory(run) {
  const {tensors, resident} = run.measured_memory, sum = values => values.reduce((a, b) => a + b, 0);
  const row = (name, held, all) => [name, held > 0 ? bytes(held) : "", bytes(all)];
  const rows = resident.map((all, i) => row(`process ${i}`, tensors[i], all));
  if (rows.length > 1) rows.push(row("all", sum(tensors), sum(resident)));
  const predicted = run.memory ? sum(run.memory.flatMap(worker => kMemoryParts.map(([part]) => worker[part]))) : 0;
  return [el("p", {class: "faint"}, "Measured: the most that each process held at once in its last session."),
    table(["", "large tensors", "in all, with libraries"], rows),
    predicted > 0 && sum(tensors) > 0 ? el("p", {}, `Large tensors, measured over predicted: ${(sum(tensors) / predicted).toFixed(2)}.`) : null];
}

function memoryOf(run) {
  return [el("h3", {}, run.name), run.memory ? memoryTable(run) : null, run.measured_memory ? measuredMemory(run) : null];
}

function memoryTable(run) {
  const totals = run.memory.map(worker => kMemoryParts.reduce((sum, [part]) => sum + worker[part], 0));
  const most = Math.max(1, ...totals);
  const bar = worker => el("div", {class: "bar", role: "img", "aria-label": "memory by part"}, kMemoryParts.map(([part, name]) =>
    el("span", {style: `width:${100 * worker[part] / most}%;background:var(--${name})`, title: `${part}: ${bytes(worker[part])}`})));
  const rows = run.memory.map((worker, i) => [`worker ${i}`, bar(worker), ...kMemoryParts.map(([part]) => bytes(worker[part])), bytes(totals[i])]);
  rows.push(["all", "", ...kMemoryParts.map(([part]) => bytes(run.memory.reduce((sum, worker) => sum + worker[part], 0))), bytes(totals.reduce((a, b) => a + b, 0))]);
  return [el("p", {class: "faint"}, "Predicted for each worker on a device of its own, from the sizes that the run measured (costs.json)."),
    el("div", {class: "controls"}, kMemoryParts.map(([part, name]) => el("label", {}, el("span", {class: "chip", style: `background:var(--${name})`}), part))),
    table(["", "", ...kMemoryParts.map(([part]) => part), "total"], rows, 2)];
}

// The measurements of each run's last session beside the prediction from its costs, which are of the last that ended; and
// a trace's mean times beside the costs.
function timesTables(data) {
  const parts = [];
  const predicted = data.runs.filter(run => run.predicted);
  if (predicted.length > 0) {
    const of = (measured, expected) => finite(measured) && expected > 0 ? (measured / expected).toFixed(2) : "";
    parts.push(table(["run", "executor", "tokens/s", "predicted", "measured / predicted", "waiting", "predicted"], predicted.map(run => {
      const end = run.end || {}, rate = run.end ? end.tokens_per_second : lastOf(run, "tokens_per_second");
      return [run.name, run.executor, short(rate), short(run.predicted.tokens_per_second), of(rate, run.predicted.tokens_per_second),
        percent(end.bubble_fraction), percent(run.predicted.bubble_fraction)];
    }), 2));
    parts.push(el("p", {class: "faint"}, "Measured: a run's last session. Predicted: the simulator, with the mean times of actions in the last session that ended, links that are free, a core for every worker, and no evaluations or checkpoints. A run whose workers share cores is slower."));
  }
  for (const run of predicted) {
    const traced = data.timelines.find(timeline => timeline.name === run.name && !timeline.simulated);
    const stage = (kind, i) => traced ? (traced.means.find(means => means.stage === i) || {})[kind] : null;
    const head = ["stage", "forward", "backward", "its inputs", "its weights", "update", "adopt"];
    if (traced) head.push("forward, traced", "backward, traced", "update, traced");
    const rows = run.costs.map((cost, i) => {
      const row = [`stage ${i}`, ...["forward", "backward", "backward_input", "backward_weights", "update", "adopt"].map(kind => seconds(cost[kind]))];
      return traced ? [...row, seconds(stage("forward", i)), seconds(stage("backward", i)), seconds(stage("update", i))] : row;
    });
    parts.push(el("details", {open: predicted.length === 1}, el("summary", {}, `Mean times of actions: ${run.name}`), table(head, rows)));
  }
  return parts;
}

function configurationTables(runs) {
  const tables = new Map();
  for (const run of runs) for (const [name, keys] of Object.entries(run.config)) for (const key of Object.keys(keys)) {
    if (!tables.has(name)) tables.set(name, new Set());
    tables.get(name).add(key);
  }
  const value = (run, name, key) => (run.config[name] || {})[key];
  const row = (name, key, label, marks) => {
    const differs = runs.some(run => value(run, name, key) !== value(runs[0], name, key));
    return {differs, element: el("tr", {}, el("th", {scope: "row"}, label), runs.map(run =>
      el("td", {class: "value" + (marks && differs ? " differs" : "")}, value(run, name, key) === undefined ? "" : value(run, name, key))))};
  };
  const whole = rows => el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "table"}, el("table", {},
    runs.length > 1 ? el("thead", {}, el("tr", {}, el("th", {}, ""), runs.map(run => el("th", {}, run.name)))) : null, el("tbody", {}, rows)));
  const parts = [];
  if (runs.length > 1) {
    const differing = [];
    for (const [name, keys] of tables) for (const key of keys) {
      const made = row(name, key, `${name}.${key}`, false);
      if (made.differs) differing.push(made.element);
    }
    parts.push(el("h3", {}, "What differs"));
    parts.push(differing.length > 0 ? whole(differing) : el("p", {}, "Nothing: the runs have the same configuration."));
  }
  for (const [name, keys] of tables) {
    parts.push(el("details", {}, el("summary", {}, `[${name}]`), whole([...keys].map(key => row(name, key, key, true).element))));
  }
  return parts;
}

// A study's tables: a row for each method, a column for each number of stages.
function studyTables(study) {
  if (!study.arms) return [el("h3", {}, study.study), el("p", {}, "No results yet: tables come when the study has ended.")];
  const stages = [...new Set(study.arms.map(arm => arm.stages))].sort((a, b) => a - b);
  const methods = [...new Set(study.arms.map(arm => arm.method))];
  const grid = cell => table(["method", ...stages.map(count => `P\u00a0=\u00a0${count}`)], methods.map(method => [method, ...stages.map(count => {
    const arm = study.arms.find(arm => arm.method === method && arm.stages === count);
    return !arm ? "" : arm.diverged ? "diverged" : cell(arm);
  })]));
  const parts = [el("h3", {}, study.study), el("p", {}, study.target_rule)];
  study.targets.forEach((target, i) => {
    parts.push(el("h3", {}, `Updates to a loss of ${target.toFixed(4)}, in brackets over those with the fewest stages`));
    parts.push(grid(arm => !finite(arm.targets[i].updates) ? "not reached" : arm.targets[i].updates + (finite(arm.targets[i].slowdown) ? `\u00a0(${arm.targets[i].slowdown.toFixed(2)})` : "")));
    parts.push(el("h3", {}, `Time to a loss of ${target.toFixed(4)}`));
    parts.push(grid(arm => finite(arm.targets[i].seconds) ? seconds(arm.targets[i].seconds) : "not reached"));
  });
  parts.push(el("h3", {}, "Last training loss"), grid(arm => short(arm.last_loss)));
  if (study.arms.some(arm => finite(arm.val_loss))) parts.push(el("h3", {}, "Last validation loss"), grid(arm => short(arm.val_loss)));
  if (study.arms.some(arm => arm.diagnostics)) {
    parts.push(el("h3", {}, "Hessian (1,1)-norm in own coordinates, in brackets rotated over own"));
    parts.push(grid(arm => arm.diagnostics ? `${short(arm.diagnostics.hessian_norm)} (${(arm.diagnostics.rotated_norm / arm.diagnostics.hessian_norm).toFixed(3)})` : ""));
    parts.push(el("h3", {}, "Updates of the first stage: cosine of late and current; oscillation"));
    const updates = ({cosine, oscillation}) => finite(cosine) && finite(oscillation) ? `${cosine.toFixed(3)}; ${oscillation.toFixed(3)}` : "-";
    parts.push(grid(arm => arm.diagnostics ? updates(arm.diagnostics) : ""));
  }
  parts.push(el("h3", {}, "Learning rates"), grid(arm => String(arm.learning_rate) + (arm.trials.length > 0
    ? " of " + arm.trials.map(trial => `${trial.learning_rate}: ${finite(trial.last_loss) ? trial.last_loss.toFixed(3) : "diverged"}`).join(", ") : "")));
  return parts;
}
