// Draws a trace: a row for each worker, a box for each action, colours in between for what it waited for, and arrows
// for messages. Actions within others, which other programs' traces have, are in lanes below those. Times are in
// microseconds. It is drawn on a canvas; only the actions in view are visited.

const kKinds = {f: "forward", b: "backward", u: "update", a: "adopt", x: "other-slice"};
const kKindNames = {f: "forward", b: "backward", u: "update", a: "adoption of a version", x: "other"};
// In the order of WaitReason.
const kWaits = [["wait-activation", "an activation"], ["wait-gradient", "a gradient"], ["wait-link", "a message under way"],
  ["wait-update", "gradients of others"], ["wait-version", "a version"], ["wait-other", "room, a core or a drain: the trace does not say"], ["wait-end", "the end"]];
const kRow = 30, kBox = 22, kLane = 24, kAxisHeight = 26, kMaxArrows = 400;
const kMaxLanes = 32, kMaxAllLanes = 400;  // of a track, and about how many of all: a canvas has a largest size
const kRounding = 0.15;  // times are rounded to tenths

// The first index whose value is above x, in a sorted list.
function above(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
}

// The latest end of any slice up to each: a slice may lie in others, which end after it.
function latestEnds(track) {
  let latest = -Infinity;
  return track.start.map((start, i) => latest = Math.max(latest, start + track.duration[i]));
}

// The lane of each slice: the first that is free where it starts, so that it is below those that it lies in. The last
// lane also takes what has none.
function lanesOf(track, most) {
  const ends = [];  // by lane
  return track.start.map((start, i) => {
    const free = ends.findIndex(end => end <= start + kRounding);
    const lane = free >= 0 ? free : Math.min(ends.length, most - 1);
    ends[lane] = Math.max(ends[lane] ?? 0, start + track.duration[i]);
    return lane;
  });
}

// Where the box of a slice in that lane begins.
function boxTop(track, lane) { return track.top + (kRow - kBox) / 2 + lane * kLane; }

class Timeline {
  constructor(data) {
    this.data = data;
    const mostLanes = Math.max(1, Math.min(kMaxLanes, Math.floor(kMaxAllLanes / data.tracks.length)));
    this.bottom = kAxisHeight;
    this.tracks = data.tracks.map(track => {
      const lanes = lanesOf(track, mostLanes), count = lanes.reduce((most, lane) => Math.max(most, lane + 1), 1), top = this.bottom;
      this.bottom += kRow + (count - 1) * kLane;
      return {...track, names: track.names.length > 0 ? track.names.split("\n") : [], waitStarts: track.waits.map(wait => wait[0]), latestEnds: latestEnds(track), lanes, laneCount: count, top, bottom: this.bottom};
    });
    this.arrowTimes = data.arrows.map(arrow => arrow[1]);
    this.longestArrow = data.arrows.reduce((most, arrow) => Math.max(most, arrow[3] - arrow[1]), 0);
    this.length = Math.max(1, data.length);
    this.from = 0;
    this.to = this.length;
    this.chosen = null;  // {track, index}
    this.hovered = null;
    this.found = {text: "", hits: [], at: -1};
    this.labels = [];  // bounding boxes of all text on the canvas
    this.pending = false;
    this.makeElement();
    kRedraws.set(this.element, () => this.drawSoon());
  }

  get range() { return [this.from, this.to]; }

  makeElement() {
    const data = this.data;
    this.canvas = el("canvas", {tabindex: "0", role: "img", "aria-label": `Timeline of ${data.name}: ${this.tracks.length} workers, ${data.kept} actions. Keys: arrows move, + and - zoom, 0 shows all, comma and point choose actions.`});
    this.search = el("input", {type: "search", placeholder: "2F17", "aria-label": "Find an action", size: "10", oninput: () => this.find(this.search.value),
      onkeydown: event => { if (event.key === "Enter") this.findNext(event.shiftKey ? -1 : 1); }});
    this.count = el("span", {role: "status"});
    this.said = el("div", {class: "said", role: "status"});
    const button = (text, act) => el("button", {type: "button", onclick: act}, text);
    const kinds = [...new Set(data.tracks.flatMap(track => [...new Set(track.kinds)]))];
    const reasons = [...new Set(data.tracks.flatMap(track => [...new Set(track.waits.map(wait => wait[2]))]))].sort();
    const chip = (name, text) => el("label", {}, el("span", {class: "chip", style: `background:var(--${name})`}), text);
    this.element = el("div", {class: "timeline"},
      el("h3", {}, data.name + (data.simulated ? ": its schedule, simulated with the costs that it measured" : "")),
      data.kept < data.total ? el("p", {}, `${data.kept} of ${data.total} actions, in ${data.left_out.length} stretches; between them the timeline is hatched.`) : null,
      el("div", {class: "controls"}, el("label", {}, "Find", this.search), this.count, button("Zoom in", () => this.zoom(0.5)), button("Zoom out", () => this.zoom(2)),
        button("Whole", () => this.show(0, this.length))),
      this.canvas, this.said,
      el("div", {class: "controls"}, kinds.sort().map(kind => chip(kKinds[kind], kKindNames[kind]))),
      el("div", {class: "controls"}, "Waiting for", reasons.map(reason => chip(...kWaits[reason]))),
      el("p", {class: "faint hint"}, "Wheel or pinch to zoom, drag to move. Keys: ← → move, + − zoom, 0 the whole, comma and point the action before and after, / to find."),
      this.sharesTable());
    const canvas = this.canvas;
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.shiftKey) this.move((event.deltaY || event.deltaX) / 500);
      else this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.timeAt(event.offsetX));
    }, {passive: false});
    canvas.addEventListener("keydown", event => this.key(event));
    this.pointers = new Map();
    canvas.addEventListener("pointerdown", event => {
      this.pointers.set(event.pointerId, event.offsetX);
      this.pressed = event.offsetX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => this.pointerMoved(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => {
      if (name === "pointerup" && Math.abs(event.offsetX - this.pressed) < 4) this.choose(this.sliceAt(event.offsetX, event.offsetY));
      this.pointers.delete(event.pointerId);
    });
    canvas.addEventListener("pointerleave", () => { this.hovered = null; this.say(); this.drawSoon(); });
  }

  // How each worker spent its time, over the whole trace.
  sharesTable() {
    const rows = this.data.shares.map((share, i) => {
      const all = share.busy + share.waited.reduce((a, b) => a + b, 0);
      const bar = el("div", {class: "bar", role: "img", "aria-label": "shares of time"}, el("span", {style: `width:${100 * share.busy / all}%;background:var(--forward)`}),
        share.waited.map((time, reason) => el("span", {style: `width:${100 * time / all}%;background:var(--${kWaits[reason][0]})`})));
      return [this.data.tracks[i].name, bar, percent(share.busy / all), ...share.waited.map(time => percent(time / all))];
    });
    return el("details", {open: rows.length <= 16}, el("summary", {}, "Shares of each worker's time"), table(["", "", "busy", ...kWaits.map(([, text], i) => i === 5 ? "room, core, drain" : text)], rows, 2));
  }

  // --- what is shown

  show(from, to) {
    const least = Math.min(this.length, 0.5), span = Math.min(this.length, Math.max(least, to - from));
    this.from = Math.min(Math.max(0, from), this.length - span);
    this.to = this.from + span;
    this.drawSoon();
  }
  zoom(factor, about) {
    const centre = about === undefined ? (this.from + this.to) / 2 : about;
    this.show(centre - (centre - this.from) * factor, centre - (centre - this.from) * factor + (this.to - this.from) * factor);
  }
  move(share) { const by = share * (this.to - this.from); this.show(this.from + by, this.to + by); }

  key(event) {
    const keys = {"+": () => this.zoom(0.7), "=": () => this.zoom(0.7), ArrowUp: () => this.zoom(0.7), "-": () => this.zoom(1.4), ArrowDown: () => this.zoom(1.4),
      "0": () => this.show(0, this.length), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), ".": () => this.step(1), ",": () => this.step(-1),
      "/": () => this.search.focus()};
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  pointerMoved(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) {
      this.hovered = this.sliceAt(event.offsetX, event.offsetY);
      this.say(event);
      this.drawSoon();
      return;
    }
    const others = [...this.pointers.entries()].filter(([id]) => id !== event.pointerId);
    if (others.length > 0) {
      const other = others[0][1], was = Math.abs(before - other), is = Math.abs(event.offsetX - other);
      if (was > 4 && is > 4) this.zoom(was / is, this.timeAt(other));
    } else {
      const by = (before - event.offsetX) * this.perPixel();
      this.show(this.from + by, this.to + by);
    }
    this.pointers.set(event.pointerId, event.offsetX);
  }

  // --- finding

  find(text) {
    this.found = {text, hits: [], at: -1};
    text = text.trim().toLowerCase();
    if (text.length > 0) {
      const exact = [], within = [];
      this.tracks.forEach((track, number) => track.names.forEach((name, index) => {
        const lower = name.toLowerCase();
        if (lower === text) exact.push({track: number, index}); else if (lower.includes(text)) within.push({track: number, index});
      }));
      this.found.hits = exact.length > 0 ? exact : within;
      this.found.hits.sort((a, b) => this.tracks[a.track].start[a.index] - this.tracks[b.track].start[b.index]);
    }
    this.count.textContent = text.length === 0 ? "" : this.found.hits.length === 0 ? "none" : `${this.found.hits.length} found`;
    if (this.found.hits.length > 0) this.findNext(1); else this.choose(null);
  }
  findNext(by) {
    const {hits} = this.found;
    if (hits.length === 0) return;
    this.found.at = (this.found.at + by + hits.length) % hits.length;
    this.count.textContent = `${this.found.at + 1} of ${hits.length}`;
    this.choose(hits[this.found.at]);
    const track = this.tracks[this.chosen.track], start = track.start[this.chosen.index], duration = track.duration[this.chosen.index];
    const span = Math.max(2 * duration, Math.min(this.to - this.from, 12 * duration));
    this.show(start + duration / 2 - span / 2, start + duration / 2 + span / 2);
  }
  choose(slice) { this.chosen = slice; this.say(); this.drawSoon(); }
  // The action before or after the chosen one, on its worker.
  step(by) {
    if (!this.chosen) { this.choose(this.tracks.length > 0 && this.tracks[0].names.length > 0 ? {track: 0, index: Math.min(this.tracks[0].names.length - 1, above(this.tracks[0].start, this.from))} : null); return; }
    const track = this.tracks[this.chosen.track], index = this.chosen.index + by;
    if (index < 0 || index >= track.names.length) return;
    this.choose({track: this.chosen.track, index});
    if (track.start[index] < this.from || track.start[index] > this.to) this.show(track.start[index] - (this.to - this.from) / 2, track.start[index] + (this.to - this.from) / 2);
  }

  describe(slice) {
    const track = this.tracks[slice.track];
    return `${track.names[slice.index]}, ${kKindNames[track.kinds[slice.index]]}, on ${track.name}: ${seconds(track.duration[slice.index] / 1e6)} from ${seconds(track.start[slice.index] / 1e6)} on`;
  }
  say(event) {
    const lines = [];
    if (this.hovered) lines.push(this.describe(this.hovered));
    else if (event) {
      const wait = this.waitAt(event.offsetX, event.offsetY);
      if (wait) lines.push(`${wait.track.name} waits ${seconds(wait.wait[1] / 1e6)} for ${kWaits[wait.wait[2]][1]}${wait.wait[3] >= 0 ? " from " + this.tracks[wait.wait[3]].name : ""}`);
    }
    if (this.chosen && lines.length === 0) lines.push("Chosen: " + this.describe(this.chosen));
    this.said.textContent = lines.join(". ");
  }

  // --- where things are

  perPixel() { return (this.to - this.from) / Math.max(1, this.width - this.left); }
  timeAt(x) { return this.from + (x - this.left) * this.perPixel(); }
  xOf(time) { return this.left + (time - this.from) / this.perPixel(); }
  trackAt(y) { return this.tracks.findIndex(track => y >= track.top && y < track.bottom); }
  sliceAt(x, y) {
    const number = this.trackAt(y);
    if (number < 0 || x < this.left) return null;
    const track = this.tracks[number], slack = 1.5 * this.perPixel(), time = this.timeAt(x);
    const lane = Math.min(track.laneCount - 1, Math.max(0, Math.floor((y - boxTop(track, 0)) / kLane)));
    const index = above(track.start, time + slack) - 1;
    for (let i = index; i >= 0 && track.latestEnds[i] + slack >= time; --i) {
      if (track.lanes[i] === lane && track.start[i] <= time + slack && time <= track.start[i] + Math.max(track.duration[i], slack)) return {track: number, index: i};
    }
    return null;
  }
  waitAt(x, y) {
    const number = this.trackAt(y);
    if (number < 0 || x < this.left) return null;
    const track = this.tracks[number], time = this.timeAt(x), index = above(track.waitStarts, time) - 1;
    const wait = index >= 0 ? track.waits[index] : null;
    return wait && time <= wait[0] + wait[1] ? {track, wait} : null;
  }

  // --- drawing

  drawSoon() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    const canvas = this.canvas, ratio = window.devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    if (this.width === 0) return;
    const height = this.bottom + 4;
    canvas.style.height = height + "px";
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = this.pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px " + getComputedStyle(document.body).fontFamily;
    pen.textBaseline = "middle";
    this.colours = Object.fromEntries(["text", "faint", "line", "soft", "mark", "arrow", "slice-text", ...Object.values(kKinds), ...kWaits.map(([name]) => name)].map(name => [name, colour(name)]));
    this.labels = [];
    // Workers' names get the room that they need; on a phone only their numbers are shown.
    const narrow = this.width < 600;
    const names = this.tracks.map(track => narrow ? track.name.replace(/^worker /, "") : track.name);
    this.left = Math.min(this.width / 3, 10 + Math.max(20, ...names.map(name => pen.measureText(name).width)));
    this.drawAxis(height);
    this.tracks.forEach((track, number) => this.drawTrack(track, number, names[number]));
    this.drawLeftOut(height);
    this.drawArrows();
  }

  // Draws text if there is room for all of it, and records its box.
  write(text, x, y, room, align, shade) {
    const pen = this.pen, width = pen.measureText(text).width;
    if (width > room) return;
    pen.fillStyle = shade;
    pen.textAlign = "left";
    const left = align === "centre" ? x - width / 2 : align === "end" ? x - width : x;
    pen.fillText(text, left, y);
    this.labels.push({text, left, right: left + width, top: y - 6, bottom: y + 6});
  }

  drawAxis(height) {
    const pen = this.pen, rough = 90 * this.perPixel(), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough);
    pen.strokeStyle = this.colours.line;
    pen.beginPath();
    // As many digits as distinguish two ticks, in the unit of the range's end.
    const [unit, name] = this.to >= 1e6 ? [1e6, "s"] : this.to >= 1e3 ? [1e3, "ms"] : [1, "µs"];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    let free = this.left;
    for (let i = Math.ceil(this.from / step); i * step <= this.to; ++i) {
      const x = this.xOf(i * step), text = `${(i * step / unit).toFixed(digits)} ${name}`, half = pen.measureText(text).width / 2;
      pen.moveTo(x, kAxisHeight - 6);
      pen.lineTo(x, height);
      if (x - half < free || x + half > this.width) continue;
      this.write(text, x, kAxisHeight / 2 - 2, Infinity, "centre", this.colours.faint);
      free = x + half + 8;
    }
    pen.stroke();
  }

  drawTrack(track, number, name) {
    const pen = this.pen, top = boxTop(track, 0);
    this.write(name, this.left - 6, top + kBox / 2, this.left - 8, "end", this.colours.text);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width - this.left, this.bottom);
    pen.clip();
    const first = this.xOf(0), perPixel = this.perPixel();
    // Waits first, below the actions, and thin. Those narrower than a pixel are skipped if a neighbour covers the pixel.
    let drawn = -1;
    for (let i = Math.max(0, above(track.waitStarts, this.from) - 1); i < track.waits.length && track.waits[i][0] < this.to; ++i) {
      const [start, duration, reason] = track.waits[i], x = first + start / perPixel, width = duration / perPixel;
      if (x + width < drawn + 0.7) continue;
      drawn = x + width;
      pen.fillStyle = this.colours[kWaits[reason][0]];
      pen.fillRect(x, top + 5, Math.max(0.7, width), kBox - 10);
    }
    const drawnTo = new Array(track.laneCount).fill(-Infinity);
    for (let i = above(track.latestEnds, this.from); i < track.start.length && track.start[i] < this.to; ++i) {
      const start = track.start[i], end = start + track.duration[i], lane = track.lanes[i];
      if (end < this.from) continue;
      const x = first + start / perPixel, y = boxTop(track, lane), width = track.duration[i] / perPixel;
      if (width < 0.7 && Math.abs(end - drawnTo[lane]) < 0.7 * perPixel) continue;
      const isFree = drawnTo[lane] <= start + kRounding;  // not so in a last lane that takes what has none
      drawnTo[lane] = Math.max(drawnTo[lane], end);
      pen.fillStyle = this.colours[kKinds[track.kinds[i]]];
      pen.fillRect(x, y, Math.max(0.7, width - (width > 4 ? 1 : 0)), kBox);
      if (width < 18 || !isFree) continue;
      const left = Math.max(x, this.left), right = Math.min(x + width, this.width);
      this.write(track.names[i], (left + right) / 2, y + kBox / 2, right - left - 5, "centre", this.colours["slice-text"]);
    }
    for (const slice of [this.chosen, this.hovered]) {
      if (!slice || slice.track !== number) continue;
      pen.strokeStyle = this.colours.mark;
      pen.lineWidth = 2;
      pen.strokeRect(this.xOf(track.start[slice.index]) - 1, boxTop(track, track.lanes[slice.index]) - 1, Math.max(3, track.duration[slice.index] / perPixel + 1), kBox + 2);
      pen.lineWidth = 1;
    }
    pen.restore();
  }

  drawLeftOut(height) {
    const pen = this.pen;
    pen.strokeStyle = this.colours.line;
    for (const [from, to] of this.data.left_out) {
      if (to < this.from || from > this.to) continue;
      const left = Math.max(this.left, this.xOf(from)), right = Math.min(this.width, this.xOf(to));
      pen.save();
      pen.beginPath();
      pen.rect(left, kAxisHeight, right - left, height - kAxisHeight);
      pen.clip();
      pen.beginPath();
      for (let x = left - height; x < right; x += 10) { pen.moveTo(x, height); pen.lineTo(x + height, 0); }
      pen.stroke();
      pen.restore();
    }
  }

  // The arrows in view if they can be distinguished, else those of the hovered or chosen action.
  drawArrows() {
    const pen = this.pen, arrows = this.data.arrows, looked = this.hovered || this.chosen;
    const inView = [];
    for (let i = above(this.arrowTimes, this.from - this.longestArrow); i < arrows.length && arrows[i][1] <= this.to; ++i) {
      if (arrows[i][3] >= this.from) inView.push(arrows[i]);
      if (inView.length > 50 * kMaxArrows) break;
    }
    const touches = arrow => {
      if (!looked) return false;
      const track = this.tracks[looked.track], start = track.start[looked.index], end = start + track.duration[looked.index];
      return (arrow[0] === looked.track && Math.abs(arrow[1] - end) < 0.2) || (arrow[2] === looked.track && Math.abs(arrow[3] - start) < 0.2);
    };
    this.arrowsDrawn = 0;
    const middle = number => this.tracks[number].top + kRow / 2;
    pen.save();
    pen.beginPath();
    pen.rect(this.left, kAxisHeight, this.width - this.left, this.bottom - kAxisHeight);
    pen.clip();
    for (const arrow of inView) {
      const bold = touches(arrow);
      if (!bold && inView.length > kMaxArrows) continue;
      const [from, sent, to, taken] = arrow, x1 = this.xOf(sent), x2 = this.xOf(taken);
      const down = to > from ? 1 : -1, y1 = middle(from) + down * kBox / 2, y2 = middle(to) - down * kBox / 2;
      pen.globalAlpha = bold ? 1 : 0.35;
      pen.strokeStyle = pen.fillStyle = bold ? this.colours.mark : this.colours.arrow;
      pen.lineWidth = bold ? 2 : 1;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      pen.stroke();
      const angle = Math.atan2(y2 - y1, x2 - x1);
      pen.beginPath();
      pen.moveTo(x2, y2);
      for (const side of [-0.4, 0.4]) pen.lineTo(x2 - 6 * Math.cos(angle + side), y2 - 6 * Math.sin(angle + side));
      pen.fill();
      ++this.arrowsDrawn;
    }
    pen.restore();
  }
}
