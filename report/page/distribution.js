// How the figures of requests are distributed.

const POINTS = 400;

/** The share of requests (upwards) that took at most a time (rightwards), which is on a logarithmic axis where it spans much. `of` has their figures. */
function distribution(title, times, of) {
  const sorted = Float64Array.from(times.filter((us) => us != null)).sort();
  if (sorted.length < 2) return undefined;
  const [least, most] = [Math.max(sorted[0], 1), Math.max(sorted.at(-1), 2)];
  const isLogarithmic = most / least > 30;
  const scale = isLogarithmic ? Math.log : (us) => us;
  const x = (us) => (1000 * (scale(Math.max(us, 1)) - scale(least))) / (scale(most) - scale(least) || 1);
  const step = Math.max(sorted.length / POINTS, 1);
  let path = 'M0,100';
  for (let at = 0; at < sorted.length; at += step) {
    const nth = Math.floor(at);
    path += `L${x(sorted[nth]).toFixed(1)},${(100 - (100 * (nth + 1)) / sorted.length).toFixed(2)}`;
  }
  path += 'L1000,0';
  const quantiles = ['p50', 'p90', 'p99'].map((name) => [name, of[`${name}_ns`]]);
  const marks = quantiles.map(([name, ns]) => drawn('line', { x1: x(ns / 1e3), x2: x(ns / 1e3), y1: 0, y2: 100 }, tip(`${name}: ${duration(ns)}`)));
  const label = quantiles.map(([name, ns]) => `${name} ${duration(ns)}`).join(', ');
  const picture = drawn('svg', { class: 'plot', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${label}` }, drawn('path', { d: path }), marks);
  const ends = element('div', { class: 'ends' }, element('span', {}, duration(least * 1e3)), element('span', {}, isLogarithmic ? `${label} (logarithmic)` : label), element('span', {}, duration(most * 1e3)));
  return figure(title, [picture, ends]);
}
