// Charts over serving time. One window selects the time that all of them show.

/** Charts: title, kinds of series, unit, and factor (`by`) for the values. */
const CHARTS = {
  flight: { title: 'Requests in flight', kinds: ['under_way'], unit: '', tip: 'requests between arrival and end' },
  load: { title: 'Requests', kinds: ['under_way', 'running', 'waiting'], unit: '', tip: 'requests at once: in flight from arrival to end, running in a batch of an engine, or queued in it' },
  kv: { title: 'KV cache use', kinds: ['kv_used_percent'], unit: '%', most: 100, tip: 'the share of the engine’s KV cache that is in use' },
  tokens: { title: 'Output tokens per second', kinds: ['output_tokens_per_s'], unit: '/s', isSmooth: true, tip: 'the mean over 2 % of the time' },
  busy: { title: 'Devices busy', kinds: ['busy_percent'], unit: '%', most: 100, tip: 'the share of the time in which a device worked' },
  steps: { title: 'Longest step', kinds: ['longest_step_ns'], unit: 'ms', by: 1e-6, tip: 'the longest of the steps that ended at that time' },
};
const SERIES_PHASES = { under_way: 'soft', running: 'decode', waiting: 'queue', kv_used_percent: 'transfer', output_tokens_per_s: 'decode', busy_percent: 'device', longest_step_ns: 'host' };
/** Kinds of series whose values hold until the next part of the time. */
const LEVEL_KINDS = ['under_way', 'running', 'waiting', 'kv_used_percent', 'busy_percent'];
const DASHES = [undefined, [8, 3], [2, 2], [8, 3, 2, 3]];
/** Pixels to the left and right of a chart’s drawing area, for its axis and for a label. */
const [LEFT, RIGHT] = [58, 10];
const SMOOTH = 5; // parts on each side, out of 500

/** Returns the mean of each value and its neighbours, because tokens are produced one step at a time. */
function smooth(values) {
  const [sums, near] = [[0], SMOOTH];
  for (const value of values) sums.push(sums.at(-1) + (value ?? 0));
  return values.map((_, nth) => {
    const [from, to] = [Math.max(nth - near, 0), Math.min(nth + near + 1, values.length)];
    return (sums[to] - sums[from]) / (to - from);
  });
}

/** Formats a time of the trace for an axis, in s. */
function seconds(s) {
  return `${+s.toFixed(6)} s`;
}

/** A chart of some series. */
class Chart {
  #shown;
  #about;
  #window;
  #height;
  #isOverview;
  #plot;
  #isSetting = false;

  /** Creates a chart. With `isOverview`, it shows the whole serving time and marks the window. Otherwise it is zoomed to the window. */
  constructor(name, window, { height = 130, isOverview = false } = {}) {
    this.#about = CHARTS[name];
    [this.#window, this.#height, this.#isOverview] = [window, height, isOverview];
    this.#shown = data.timeline.series.filter(({ of }) => this.#about.kinds.includes(of));
    this.isEmpty = this.#shown.length === 0;
    const title = explained(element('span', { tabindex: 0 }, this.#about.title), this.#about.tip);
    this.element = element('div', { class: 'chart', 'data-chart': name }, element('figcaption', {}, title));
    if (!this.isEmpty) window.follow(() => this.#follow());
  }

  #name({ of, process }) {
    return [this.#about.kinds.length > 1 && LEVELS[of], process != null && processName(process)].filter(Boolean).join(', ') || LEVELS[of];
  }

  /** Returns how each series is drawn. Series of one kind have the same colour and different dashes. */
  #strokes(colour) {
    const nths = this.#shown.map(({ of }, nth) => this.#shown.slice(0, nth).filter((other) => other.of === of).length);
    return this.#shown.map(({ of }, nth) => ({ stroke: colour(SERIES_PHASES[of]), dash: DASHES[nths[nth] % DASHES.length] }));
  }

  /** Draws the chart, by default with its width on the page. */
  draw(width = this.element.clientWidth) {
    this.#plot?.destroy();
    this.#plot = undefined;
    if (this.isEmpty || width === 0) return;
    this.#plot = new uPlot(this.#options(width), this.#values(), this.element);
    this.#follow();
  }

  /** Returns the start times of all parts, and the values of each series. The last value is repeated at the end of its part. */
  #values() {
    const { from_ns: from, part_ns: part } = data.timeline;
    const { by = 1, isSmooth } = this.#about;
    const n = this.#shown[0].values.length;
    const times = Float64Array.from({ length: n + 1 }, (_, nth) => (from + nth * part) / 1e9);
    const values = this.#shown.map((series) => {
      const all = isSmooth ? smooth(series.values) : series.values;
      return [...all, all.at(-1)].map((value) => (value == null ? null : value * by));
    });
    return [times, ...values];
  }

  #options(width) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line') }, font: '11px system-ui' };
    const { unit, most } = this.#about;
    const amount = (value) => `${value >= 1e4 ? count(value) : +value.toFixed(3)}${unit && `\u00a0${unit}`}`;
    const strokes = this.#strokes(colour);
    const top = (_, least, highest) => [0, most ?? (highest > 0 ? highest * 1.05 : 1)];
    return {
      width, height: this.#height, padding: [8, RIGHT, 0, 0],
      scales: { x: { time: false }, y: { range: top } },
      legend: { show: !this.#isOverview, markers: { width: 2, dash: (_, nth) => (strokes[nth - 1]?.dash ? 'dashed' : 'solid') } },
      cursor: { sync: { key: 'time' }, drag: { x: true, y: false, setScale: false }, points: { show: false }, bind: { dblclick: () => () => this.#window.showAll() } },
      axes: [
        { ...axis, size: 24, values: (_, ticks) => ticks.map((s) => seconds(realTime(s * 1e9) / 1e9)) },
        { ...axis, size: LEFT, space: 24, values: (_, ticks) => ticks.map(amount) },
      ],
      series: [{ label: 'at', value: (_, s) => (s == null ? '–' : seconds(realTime(s * 1e9) / 1e9)) }, ...this.#shown.map((series, nth) => ({
        ...strokes[nth], label: this.#name(series), width: 1.5, points: { show: false },
        paths: LEVEL_KINDS.includes(series.of) ? uPlot.paths.stepped({ align: 1 }) : series.of === 'longest_step_ns' ? uPlot.paths.bars({ size: [1, 4], align: 1 }) : undefined,
        fill: this.#isOverview ? `${strokes[nth].stroke}40` : undefined,
        value: (_, found) => (found == null ? '–' : amount(found)),
      }))],
      hooks: { setSelect: [(plot) => this.#selected(plot)], draw: [(plot) => this.#drawCuts(plot, colour('soft'))] },
    };
  }

  /** Draws a dashed line where a pause is cut out. */
  #drawCuts(plot, colour) {
    const { ctx, bbox: { top, height } } = plot;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.setLineDash([3, 3]);
    for (const { at } of CUTS) {
      if (at / 1e9 < plot.scales.x.min || at / 1e9 > plot.scales.x.max) continue;
      const x = plot.valToPos(at / 1e9, 'x', true);
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Zooms to the time that was selected by dragging. */
  #selected(plot) {
    if (this.#isSetting || plot.select.width < 2) return;
    const { left, width } = plot.select;
    this.#window.show(plot.posToVal(left, 'x') * 1e9, plot.posToVal(left + width, 'x') * 1e9);
    this.#follow();
  }

  #follow() {
    const plot = this.#plot;
    if (!plot) return;
    this.#isSetting = true;
    const [from, to] = this.#window.range.map((ns) => ns / 1e9);
    if (!this.#isOverview) {
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      plot.setScale('x', { min: from, max: to });
    } else if (this.#window.isWhole) {
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    } else {
      const [left, right] = [plot.valToPos(from, 'x'), plot.valToPos(to, 'x')];
      plot.setSelect({ left, width: Math.max(right - left, 2), top: 0, height: plot.over.clientHeight }, false);
    }
    this.#isSetting = false;
  }
}
