// The live page: repeatedly asks gyre serve, at addresses beside its own, what has changed.

const kPause = 2000;  // milliseconds

class Live {
  constructor() {
    this.tag = null;
    this.timelinesTag = null;
    this.timelines = [];
    this.pressed = false;  // while somebody drags, nothing is updated
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

  // Null if nothing is new.
  async news() {
    const answer = await this.ask("data", this.tag);
    if (!answer) return null;
    const data = await answer.json();
    if (data.timelines_tag !== this.timelinesTag) {
      const timelines = await this.ask("timelines", null);
      this.timelines = await timelines.json();
      this.timelinesTag = data.timelines_tag;
    }
    return {data, tag: answer.headers.get("ETag")};
  }

  async follow() {
    for (;;) {
      let news = null;
      try {
        if (!document.hidden && !this.pressed) news = await this.news();
        this.failed = null;
        if (news) this.problem = news.data.problem;
        this.say(this.problem ? `What was read last; now: ${this.problem}` : "Live: follows the files of what is shown.");
      } catch (error) {
        this.failed = this.failed || new Date().toLocaleTimeString();
        this.say(`No answer from gyre serve since ${this.failed}: this is what it said last.`);
      }
      if (news && !this.pressed) {
        this.tag = news.tag;
        show({...news.data, version: report.data.version, timelines: this.timelines});
        ++this.updates;
      }
      await new Promise(done => { this.wake = done; setTimeout(done, kPause); });
    }
  }
}
