// The timeline of the run: its phases, and below them the incidents, load and tokens of its serving time. It selects the time window for all sections below.

const RUN_PHASE_WORDS = { start_up: 'start-up', serving: 'serving', idle: 'idle', shutdown: 'shutdown' };
const INCIDENTS = 40;

/** Returns the incidents that have a time: the crash, the verdict, findings and losses. */
function incidents() {
  const { verdict, crash, findings, recorded } = data;
  const name = (process) => processName(process);
  return [
    crash?.last_ns != null && { kind: 'crash', text: `${name(crash.process)} died`, from_ns: crash.last_ns, dur_ns: 0 },
    verdict.place && { kind: 'verdict', text: verdict.text, ...verdict.place },
    ...findings.filter(({ place }) => place).map(({ rule, evidence, place }) => ({ kind: 'finding', text: `${words(rule)}: ${evidence}`, ...place })),
    ...recorded.losses.filter(({ from_ns: from }) => from != null).map(({ process, cause, events, from_ns: from, to_ns: to }) => (
      { kind: 'loss', text: `${process ?? 'a process'} lost ${counted(events, 'event', 'events')} (${words(cause)})`, from_ns: from, dur_ns: (to ?? from) - from })),
  ].filter(Boolean).slice(0, INCIDENTS);
}

class RunTimeline {
  #window;
  #status = element('span', { 'aria-live': 'polite' });
  #charts;

  constructor(window) {
    this.#window = window;
    const chart = (name) => new Chart(name, window, { height: 96, isOverview: true });
    const nonEmpty = (charts) => charts.filter(({ isEmpty }) => !isEmpty);
    this.#charts = nonEmpty([chart('flight'), chart('tokens')]);
    if (this.#charts.length === 0) this.#charts = nonEmpty([chart('busy'), chart('steps')]).slice(0, 1); // a trace without requests
    const button = (text, what, name) => element('button', { type: 'button', onclick: what, 'aria-label': name }, text);
    const controls = this.#charts.length > 0 && element('div', { class: 'controls' },
      button('whole', () => window.showAll()), button('zoom in', () => window.scale(0.5)), button('zoom out', () => window.scale(2)),
      button('←', () => window.move(-0.25), 'earlier'), button('→', () => window.move(0.25), 'later'), this.#status);
    this.element = element('div', { id: 'timeline', tabindex: 0, role: 'group', 'aria-label': 'Timeline: plus and minus zoom, arrows move, 0 shows all', onkeydown: (event) => this.#key(event) },
      this.#phases(), this.#incidents(), this.#charts.map(({ element: chart }) => chart), this.#cuts(), controls);
    window.follow(() => this.#showStatus());
    this.#showStatus();
  }

  draw(width) {
    for (const chart of this.#charts) chart.draw(width);
  }

  /** Returns a bar with the phases of the whole run, and shapes that lead to the part of it that the charts show. */
  #phases() {
    const phases = data.run_phases;
    if (phases.length === 0) return undefined;
    const [first, last] = runTimes();
    const parts = phases.map(({ kind, from_ns: from, to_ns: to }) => ({ name: RUN_PHASE_WORDS[kind], ns: to - from, colours: [`var(--${RUN_PHASES[kind]})`] }));
    const sums = new Map();
    for (const { name, ns, colours: fills } of parts) sums.set(name, { name, ns: (sums.get(name)?.ns ?? 0) + ns, colours: fills });
    const entries = [...sums.values()].map(({ name, ns, colours: fills }) => ({ name: `${name} ${duration(ns)} (${share(ns, last - first)})`, colours: fills }));
    return element('div', { class: 'phases' },
      element('figcaption', {}, `The run: ${duration(last - first)}`), legend(entries),
      element('div', { class: 'inset' }, bar(parts, last - first), this.#funnel(first, last)));
  }

  /** Returns shapes that lead from each serving phase of the run to its position on the axis of the charts. */
  #funnel(first, last) {
    const { from_ns: from, to_ns: to } = data.serving;
    if (this.#charts.length === 0 || (from <= first && to >= last && CUTS.length === 0)) return undefined;
    const edges = [from, ...CUTS.flatMap((cut) => [cut.from, cut.to]), to];
    const [left, right] = this.#window.whole;
    const picture = drawn('svg', { class: 'funnel', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    const above = (ns) => (1000 * (ns - first)) / (last - first || 1);
    const below = (ns) => (1000 * (ns - left)) / (right - left);
    for (let nth = 0; nth < edges.length; nth += 2) {
      const [start, end] = [edges[nth], edges[nth + 1]];
      picture.append(drawn('path', { d: `M${above(start)},0L${above(end)},0L${below(axisTime(end))},10L${below(axisTime(start))},10Z` }));
    }
    return picture;
  }

  /** Returns a button for each incident, at its time. Incidents outside serving time are listed below. */
  #incidents() {
    const all = incidents();
    if (all.length === 0) return undefined;
    const [first, last] = this.#window.whole;
    const { from_ns: from, to_ns: to } = data.serving;
    const isServing = ({ from_ns: at, dur_ns: dur }) => at + dur >= from && at <= to;
    const left = (ns) => `${100 * Math.max(0, Math.min(1, (ns - first) / (last - first || 1)))}%`;
    const mark = (one) => {
      const [start, end] = [axisTime(one.from_ns), axisTime(one.from_ns + one.dur_ns)];
      const text = `${one.text} (at ${duration(one.from_ns)}${one.dur_ns > 0 ? ` for ${duration(one.dur_ns)}` : ''})`;
      return explained(element('button', { type: 'button', class: `incident ${one.kind}`, style: `left:${left(start)};width:max(9px, calc(${left(end)} - ${left(start)}))`, 'aria-label': text, onclick: () => this.#window.showPlace(one) }), text);
    };
    return element('div', { class: 'incidents' }, element('span', { class: 'soft' }, 'incidents'),
      element('div', { class: 'inset' }, all.filter(isServing).map(mark)),
      all.filter((one) => !isServing(one)).map(({ text, from_ns: at }) => element('p', { class: 'soft' }, `Outside serving time, at ${duration(at)}: ${text}.`)));
  }

  /** Returns labels for the pauses that are cut out. */
  #cuts() {
    const [first, last] = this.#window.whole;
    if (CUTS.length === 0 || this.#charts.length === 0) return undefined;
    return element('div', { class: 'inset cuts' }, CUTS.map(({ at, from, to }) => explained(
      element('span', { tabindex: 0, style: anchored((100 * (at - first)) / (last - first || 1)) }, `pause ${duration(to - from)}`),
      `no request was in flight from ${duration(from)} to ${duration(to)}: the charts leave this pause out`)));
  }

  #showStatus() {
    const [from, to] = this.#window.real;
    this.#status.replaceChildren(...(this.#window.isWhole ? ['drag over a chart to select a time, which the charts and the requests below then show'] : [`from ${seconds(+(from / 1e9).toFixed(4))} for ${duration(to - from)}: `, opens(from, to - from) ?? '']));
  }

  #key(event) {
    const window = this.#window;
    const keys = { '+': () => window.scale(0.5), '-': () => window.scale(2), ArrowLeft: () => window.move(-0.25), ArrowRight: () => window.move(0.25), 0: () => window.showAll() };
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser’s own shortcuts
    if (event.target !== this.element || !keys[event.key] || this.#charts.length === 0) return;
    event.preventDefault();
    keys[event.key]();
  }
}
