// Formats amounts for people.

/** Formats a duration with three significant digits. */
function duration(ns) {
  if (ns == null) return '–';
  const size = Math.abs(ns);
  const [amount, unit] = size < 1e3 ? [ns, 'ns'] : size < 1e6 ? [ns / 1e3, 'µs'] : size < 1e9 ? [ns / 1e6, 'ms'] : [ns / 1e9, 's'];
  const digits = unit === 'ns' ? 0 : Math.abs(amount) < 10 ? 2 : Math.abs(amount) < 100 ? 1 : 0;
  return `${amount.toFixed(digits)} ${unit}`;
}

/** Formats a whole number with commas between groups of three digits. */
function count(n) {
  return n == null ? '–' : String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Formats a number with the word that it counts: `1 event`, `2 events`. */
function counted(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Formats a part of a whole as a percentage. */
function share(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '–';
}

/** Formats a time for an option of a command, in whole µs. */
function option(ns) {
  return `${Math.floor(ns / 1e3) / 1e3}ms`;
}

/** Returns a JSON name with spaces in place of underscores. */
function words(name) {
  return name.replaceAll('_', ' ');
}
