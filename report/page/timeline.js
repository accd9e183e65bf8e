// What changed while the run went on: charts on one axis, which zoom together.

const CHARTS = [
  ['Requests', ['under_way', 'running', 'waiting'], (value) => value, ''],
  ['Room for keys and values', ['kv_used_percent'], (value) => value, '%'],
  ['Output tokens a second, over 2 % of the time', ['output_tokens_per_s'], (value) => value, ''],
  ['Devices busy', ['busy_percent'], (value) => value, '%'],
  ['Longest step', ['longest_step_ns'], (value) => value / 1e6, 'ms'],
];
const HEIGHT = 120;
const SMOOTH = 5; // parts of 500 on each side

/** The mean of each value and its neighbours: tokens come a step at a time. */
function smooth(values) {
  const [sums, near] = [[0], SMOOTH];
  for (const value of values) sums.push(sums.at(-1) + (value ?? 0));
  return values.map((_, nth) => {
    const [from, to] = [Math.max(nth - near, 0), Math.min(nth + near + 1, values.length)];
    return (sums[to] - sums[from]) / (to - from);
  });
}

class Timeline {
  #charts = [];
  #whole;
  #isSetting = false;
  #onRange;
  #says = element('span', { 'aria-live': 'polite' });
  #body = element('div');

  /** Calls `onRange` with the times in ns that are zoomed to, with nothing for all. */
  constructor(onRange) {
    this.#onRange = onRange;
    const { from_ns: from, part_ns: part, series } = data.timeline;
    const n = series[0]?.values.length ?? 0;
    this.#whole = [from / 1e9, (from + n * part) / 1e9];
    const button = (text, what) => element('button', { type: 'button', onclick: what }, text);
    this.element = element('div', { id: 'timeline', tabindex: 0, 'aria-label': 'Timeline: plus and minus zoom, arrows move, 0 shows all', onkeydown: (event) => this.#key(event) },
      element('div', { class: 'controls' }, button('whole run', () => this.zoom(this.#whole)), button('zoom in', () => this.#scale(0.5)), button('zoom out', () => this.#scale(2)), this.#says),
      this.#body, statement('steps'));
  }

  /** Draws the charts, now that the page has a width. */
  draw() {
    const range = this.#charts[0] && [this.#charts[0].scales.x.min, this.#charts[0].scales.x.max];
    this.#charts.forEach((chart) => chart.destroy());
    this.#body.replaceChildren();
    this.#charts = CHARTS.map((chart) => this.#chart(chart)).filter(Boolean);
    this.zoom(range ?? this.#whole);
  }

  #chart([title, kinds, value, unit]) {
    const { from_ns: from, part_ns: part, series } = data.timeline;
    const shown = series.filter(({ of }) => kinds.includes(of));
    if (shown.length === 0) return undefined;
    const style = getComputedStyle(document.documentElement);
    const [ink, line] = [style.getPropertyValue('--soft'), style.getPropertyValue('--line')];
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: '11px system-ui' };
    const name = ({ of, process }) => [kinds.length > 1 && words(of), process != null && processName(process)].filter(Boolean).join(', ') || title;
    const options = {
      width: this.element.clientWidth, height: HEIGHT, padding: [8, 8, 0, 0],
      scales: { x: { time: false } },
      cursor: { sync: { key: 'time' }, drag: { x: true, y: false }, points: { show: false } },
      axes: [{ ...axis, size: 26, values: (_, ticks) => ticks.map((s) => `${+s.toFixed(6)} s`) }, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => `${+tick.toFixed(3)}${unit && ` ${unit}`}`) }],
      series: [{ label: 's', value: (_, s) => (s == null ? '–' : s.toFixed(3)) }, ...shown.map((of, nth) => ({
        label: name(of), stroke: style.getPropertyValue(`--${colour(nth)}`), width: 1.25, points: { show: false },
        paths: kinds[0] === 'longest_step_ns' ? uPlot.paths.bars({ size: [1, 4] }) : undefined,
        value: (_, found) => (found == null ? '–' : `${+found.toFixed(2)}${unit && ` ${unit}`}`),
      }))],
      hooks: { setScale: [(chart, key) => key === 'x' && this.#zoomed(chart)] },
    };
    const times = Float64Array.from(shown[0].values, (_, nth) => (from + (nth + 0.5) * part) / 1e9);
    const place = element('div', { class: 'chart' }, element('figcaption', {}, title));
    this.#body.append(place);
    const values = shown.map((of) => (kinds[0] === 'output_tokens_per_s' ? smooth(of.values) : of.values));
    return new uPlot(options, [times, ...values.map((found) => found.map((one) => (one == null ? null : value(one))))], place);
  }

  #zoomed(chart) {
    if (!this.#isSetting) this.zoom([chart.scales.x.min, chart.scales.x.max]);
  }

  /** Shows the times from one to another, in s. */
  zoom([from, to]) {
    const [first, last] = this.#whole;
    [from, to] = [Math.max(from, first), Math.min(to, last)];
    if (!(to > from)) return;
    this.#isSetting = true;
    this.#charts.forEach((chart) => chart.setScale('x', { min: from, max: to }));
    this.#isSetting = false;
    const isAll = from <= first && to >= last;
    this.#says.replaceChildren(isAll ? 'drag over a chart to zoom; the requests follow' : opens(from * 1e9, (to - from) * 1e9));
    this.#onRange(isAll ? undefined : [from * 1e9, to * 1e9]);
  }

  #scale(by) {
    const { min, max } = this.#charts[0].scales.x;
    const [middle, half] = [(min + max) / 2, ((max - min) * by) / 2];
    this.zoom([middle - half, middle + half]);
  }

  #move(by) {
    const { min, max } = this.#charts[0].scales.x;
    const [first, last] = this.#whole;
    const way = Math.max(first - min, Math.min(last - max, by * (max - min)));
    this.zoom([min + way, max + way]);
  }

  #key(event) {
    const keys = { '+': () => this.#scale(0.5), '-': () => this.#scale(2), ArrowLeft: () => this.#move(-0.25), ArrowRight: () => this.#move(0.25), 0: () => this.zoom(this.#whole) };
    if (event.target !== this.element || !keys[event.key] || this.#charts.length === 0) return;
    event.preventDefault();
    keys[event.key]();
  }
}
