// Bars that consist of parts, each in the colour of its phase.

/** Phases of the parts of a request. */
const PART_PHASES = { socket: 'host', HTTP: 'host', preprocess: 'host', IPC: 'host', frontend: 'host', queue: 'queue', prefill: 'prefill', decode: 'decode', return: 'answer', answer: 'answer' };
/** Phases of the causes of idle time. Other causes are work of the host. */
const CAUSE_PHASES = {
  not_recorded: 'idle', unknown: 'idle', no_request: 'idle', not_schedulable: 'queue', frontend: 'answer', kv_transfer: 'transfer', other_rank: 'device', launch_delay: 'device',
};
/** Phases of a run. */
const RUN_PHASES = { start_up: 'host', serving: 'device', idle: 'idle', shutdown: 'host' };
/** Strength of a phase’s colour in %, for the first, the second and further parts of one phase. */
const TINTS = [100, 72, 50, 34];

/** Returns the colours of each name. `phases` returns the phases of a name: “queue + prefill” has two phases, and therefore two colours. Names with the same phase get different tints of its colour. */
function colours(names, phases) {
  const used = new Map();
  const tint = (phase) => {
    const nth = used.get(phase) ?? 0;
    used.set(phase, nth + 1);
    return nth === 0 ? `var(--${phase})` : `color-mix(in srgb, var(--${phase}) ${TINTS[nth % TINTS.length]}%, var(--paper))`;
  };
  return new Map(names.map((name) => {
    const all = phases(name);
    return [name, all.length > 1 ? all.map((phase) => `var(--${phase})`) : all.map(tint)];
  }));
}

const partPhases = (name) => name.split(' + ').map((part) => PART_PHASES[part] ?? 'host');
const causePhases = (cause) => [CAUSE_PHASES[cause] ?? 'host'];

/** Returns a bar whose parts are as wide as their share of `whole`. Each part has a `name`, `ns` and `colours`. */
function bar(parts, whole, thin) {
  const picture = drawn('svg', { class: thin ? 'bar thin' : 'bar', viewBox: '0 0 1000 12', preserveAspectRatio: 'none', role: 'img' });
  let at = 0;
  for (const { name, ns, colours: fills } of parts) {
    const width = whole > 0 ? (1000 * ns) / whole : 0;
    const height = 12 / fills.length;
    if (width > 0) picture.append(drawn('g', {}, fills.map((fill, nth) => drawn('rect', { x: at, y: nth * height, width, height, style: `fill:${fill}` })), tip(`${name}: ${duration(ns)}`)));
    at += width;
  }
  picture.setAttribute('aria-label', parts.map(({ name, ns }) => `${name} ${duration(ns)}`).join(', '));
  return picture;
}

/** Returns a small square with the colours of a part. */
function chip(fills) {
  const stops = fills.map((fill, nth) => `${fill} ${(100 * nth) / fills.length}% ${(100 * (nth + 1)) / fills.length}%`);
  return element('i', { class: 'chip', style: `background:linear-gradient(${stops.join(',')})` });
}

/** Returns the list of colours and their names. */
function legend(entries) {
  return element('div', { class: 'legend' }, entries.map(({ name, colours: fills, meaning }) => element('span', {}, chip(fills), meaning ? `${name}: ${meaning}` : name)));
}
