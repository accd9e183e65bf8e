// Distributions of request figures.

const POINTS = 400;
const QUANTILES = [0.5, 0.9, 0.99];

/** Returns a quantile of sorted values. It is interpolated linearly between ranks, as in the percentiles of the report. */
function quantile(sorted, part) {
  const at = part * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

/** Returns round values in a range: equal steps, or 1, 2 and 5 times the powers of ten. */
function ticks(least, most, isLogarithmic) {
  const power = 10 ** Math.floor(Math.log10(isLogarithmic ? least : (most - least) / 4));
  if (!isLogarithmic) {
    const step = [1, 2, 5, 10].map((by) => by * power).find((by) => (most - least) / by <= 4);
    return Array.from({ length: Math.floor(most / step) - Math.ceil(least / step) + 1 }, (_, nth) => (Math.ceil(least / step) + nth) * step);
  }
  const all = [];
  for (let at = power; at <= most; at *= 10) all.push(...[1, 2, 5].map((by) => by * at));
  const shown = all.filter((us) => us >= least && us <= most);
  return shown.length > 5 ? shown.filter((us) => Number.isInteger(Math.log10(us))) : shown;
}

/** Returns a chart of the share of requests (vertical) that took at most a time (horizontal). The time axis is logarithmic if the range is large. */
function distribution(title, times, phase) {
  const sorted = Float64Array.from(times.filter((us) => us != null)).sort();
  if (sorted.length < 2) return undefined;
  const [least, most] = [Math.max(sorted[0], 1), Math.max(sorted.at(-1), 2)];
  const isLogarithmic = most / least > 30;
  const scale = isLogarithmic ? Math.log : (us) => us;
  const x = (us) => (100 * (scale(Math.max(us, 1)) - scale(least))) / (scale(most) - scale(least) || 1);
  // The curve goes through the percentiles, so their marks are exactly on it.
  const last = Math.min(sorted.length, POINTS) - 1;
  const shares = [...Array.from({ length: last + 1 }, (_, nth) => nth / last), ...QUANTILES].sort((a, b) => a - b);
  const path = shares.map((part) => `${x(quantile(sorted, part)).toFixed(3)},${(100 * (1 - part)).toFixed(3)}`).join('L');
  const marks = QUANTILES.map((part) => ({ name: `p${100 * part}`, us: quantile(sorted, part), part }));
  const label = marks.map(({ name, us }) => `${name} ${duration(us * 1e3)}`).join(', ');
  const lines = ticks(least, most, isLogarithmic);
  const picture = drawn('svg', { viewBox: '0 0 100 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${label}` },
    lines.map((us) => drawn('line', { x1: x(us), x2: x(us), y1: 0, y2: 100 })), [0, 50, 100].map((y) => drawn('line', { x1: 0, x2: 100, y1: y, y2: y })),
    drawn('path', { d: `M${path}`, style: `stroke:var(--${phase})` }));
  const dots = marks.map(({ name, us, part }) => explained(element('i', { class: 'dot', tabindex: 0, role: 'img', 'aria-label': `${name} ${duration(us * 1e3)}`, style: `left:${x(us)}%;top:${100 * (1 - part)}%;background:var(--${phase})` }), `${name}: ${duration(us * 1e3)}`));
  const across = lines.map((us) => element('span', { style: anchored(x(us)) }, duration(us * 1e3)));
  const caption = explained(element('span', { tabindex: 0 }, title), 'the share of requests that took at most a time');
  return element('figure', { class: 'distribution' }, element('figcaption', {}, caption, ' ', element('small', {}, `${label}${isLogarithmic ? ' (logarithmic)' : ''}`)),
    element('div', { class: 'plot' }, element('div', { class: 'up' }, ['100 %', '50 %', '0 %'].map((text) => element('span', {}, text))), element('div', { class: 'area' }, picture, dots), element('div', { class: 'across' }, across)));
}
