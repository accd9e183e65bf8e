// Times. The axis of charts is serving time, without long pauses.

/** Pauses: their position on the axis, and their start and end in the trace. */
const CUTS = (() => {
  let cut = 0;
  return data.serving.pauses.map(({ from_ns: from, to_ns: to }) => {
    const at = from - cut;
    cut += to - from;
    return { at, from, to };
  });
})();

/** Returns the time in the trace for a time on the axis. At a pause, this is the end of the pause, or its start if a window ends there (`isEnd`). */
function realTime(ns, isEnd = false) {
  return CUTS.reduce((time, { at, from, to }) => (ns > at || (ns === at && !isEnd) ? time + to - from : time), ns);
}

/** Returns the time on the axis for a time in the trace. */
function axisTime(ns) {
  return CUTS.reduce((time, { from, to }) => time - Math.max(0, Math.min(ns, to) - from), ns);
}

/** Returns the first and the last time of the run, in ns from the start of the trace. */
function runTimes() {
  const { run_phases: phases, serving, recorded } = data;
  return phases.length > 0 ? [phases[0].from_ns, phases.at(-1).to_ns] : [serving.from_ns, serving.from_ns + recorded.wall_ns];
}

/** Returns the command that opens Perfetto at a time, or nothing if the report covers several traces. The time is limited to the trace, because Perfetto refuses other times. */
function opens(startNs, durNs) {
  if (data.opens == null) return undefined;
  const [first, last] = runTimes();
  const margin = Math.max(durNs / 20, 1e5);
  const from = 1e3 * Math.ceil(Math.max(startNs - margin, first) / 1e3);
  const to = Math.min(startNs + durNs + margin, last);
  return command(`sa-profile open ${data.opens} --at ${option(from)} --for ${option(Math.max(to - from, 1e3))}`);
}

/** Part of serving time that the charts and the list of requests show, in ns on the axis. */
class TimeWindow {
  #from;
  #to;
  #followers = [];

  constructor(from, to) {
    this.whole = [from, to];
    [this.#from, this.#to] = [from, to];
  }

  get range() {
    return [this.#from, this.#to];
  }

  get isWhole() {
    return this.#from <= this.whole[0] && this.#to >= this.whole[1];
  }

  /** Returns the window in times of the trace. */
  get real() {
    return [realTime(this.#from), realTime(this.#to, true)];
  }

  /** Calls `follower` after each change. */
  follow(follower) {
    this.#followers.push(follower);
  }

  show(from, to) {
    const [first, last] = this.whole;
    [from, to] = [Math.max(from, first), Math.min(to, last)];
    if (!(to > from) || (from === this.#from && to === this.#to)) return;
    [this.#from, this.#to] = [from, to];
    for (const follower of this.#followers) follower();
  }

  /** Shows a place in the trace, with a margin around it. */
  showPlace({ from_ns: from, dur_ns: dur }) {
    const margin = Math.max(dur / 4, (this.whole[1] - this.whole[0]) / 50);
    this.show(axisTime(from) - margin, axisTime(from + dur) + margin);
  }

  showAll() {
    this.show(...this.whole);
  }

  scale(by) {
    const [middle, half] = [(this.#from + this.#to) / 2, ((this.#to - this.#from) * by) / 2];
    this.show(middle - half, middle + half);
  }

  move(by) {
    const [first, last] = this.whole;
    const distance = Math.max(first - this.#from, Math.min(last - this.#to, by * (this.#to - this.#from)));
    this.show(this.#from + distance, this.#to + distance);
  }
}
