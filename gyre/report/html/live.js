// The live page: repeatedly asks gyre serve, at addresses beside its own, what has changed.

const kPause = 2000;  // milliseconds

class Live {
  constructor() {
    this.tag = null;
    this.timelinesTag = null;
    this.timelines = [];
    this.pressed = false;  // while somebody drags, nothing is updated
    this.unshown = null;   // data that is not drawn yet, or not in all sections
    this.undrawn = null;   // what could not be drawn, and why
    this.updates = 0;
    this.line = document.getElementById("live");
    document.addEventListener("pointerdown", () => { this.pressed = true; }, true);
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => { this.pressed = false; }, true);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.wake) this.wake(); });
    report.live = this;
  }

  say(text) {
    if (this.line.textContent !== text) this.line.textContent = text;  // setting it again would make screen readers read it again
    this.line.hidden = false;
  }

  async ask(name, tag) {
    const answer = await fetch(name, {headers: tag ? {"If-None-Match": tag} : {}, cache: "no-store", signal: AbortSignal.timeout(30000)});
    if (answer.status === 304) return null;
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }

  async read() {
    const answer = await this.ask("data", this.tag);
    if (!answer) return;
    const data = await answer.json();
    if (data.timelines_tag !== this.timelinesTag) {
      const timelines = await this.ask("timelines", null);
      this.timelines = await timelines.json();
      this.timelinesTag = data.timelines_tag;
    }
    this.tag = answer.headers.get("ETag");
    this.problem = data.problem;
    this.unshown = {...data, version: report.data.version, timelines: this.timelines};
  }

  draw() {
    const data = this.unshown;
    this.unshown = null;
    try {
      const {isHeld, problems} = show(data);
      if (isHeld) this.unshown = data;
      this.undrawn = problems.join("; ");
    } catch (error) {
      console.error(error);
      this.undrawn = error.message;
    }
    ++this.updates;
  }

  state() {
    if (this.failed) return `No answer from gyre serve since ${this.failed}: this is what it said last.`;
    if (this.problem) return `What was read last; now: ${this.problem}`;
    if (this.undrawn) return `Live, but not all of it can be drawn: ${this.undrawn}`;
    return "Live: follows the files of what is shown.";
  }

  async follow() {
    for (;;) {
      try {
        if (!document.hidden && !this.pressed) await this.read();
        this.failed = null;
      } catch (error) {
        this.failed = this.failed || new Date().toLocaleTimeString();
      }
      if (this.unshown && !this.pressed) this.draw();
      this.say(this.state());
      await new Promise(done => { this.wake = done; setTimeout(done, kPause); });
    }
  }
}
