// Amounts as people read them.

/** A duration with three digits that count. */
function duration(ns) {
  if (ns == null) return '–';
  const size = Math.abs(ns);
  const [amount, unit] = size < 1e3 ? [ns, 'ns'] : size < 1e6 ? [ns / 1e3, 'µs'] : size < 1e9 ? [ns / 1e6, 'ms'] : [ns / 1e9, 's'];
  const digits = unit === 'ns' ? 0 : Math.abs(amount) < 10 ? 2 : Math.abs(amount) < 100 ? 1 : 0;
  return `${amount.toFixed(digits)} ${unit}`;
}

/** A whole number with its thousands apart. */
function count(n) {
  return n == null ? '–' : String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Returns a number of things: `1 event`, `2 events`. */
function counted(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A part of a whole. */
function share(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '–';
}

/** A time as an option of a command takes it, in whole µs. */
function option(ns) {
  return `${Math.floor(ns / 1e3) / 1e3}ms`;
}

/** The names of JSON in words. */
function words(name) {
  return name.replaceAll('_', ' ');
}
