// The requests: figures of all, and a bar for each.

const SHOWN = 25;
const ORDERS = [
  ['slowest first', (at) => -(data.request.e2e_us[at] ?? -1)],
  ['longest to the first token', (at) => -(data.request.ttft_us[at] ?? -1)],
  ['longest per token', (at) => -(data.request.tpot_us[at] ?? -1)],
  ['by arrival', (at) => data.request.arrival_us[at] ?? Infinity],
];

/** Returns a note on the requests that some figures leave out. */
function outOfOrder() {
  const { requests: n, request_ids: ids } = data.requests.out_of_order;
  const words = `${n === 1 ? '1 request has' : `${count(n)} requests have`} moments out of order, as when clocks of hosts are apart: left out of the figures between them`;
  return n > 0 && element('p', { class: 'soft' }, `${words} (${ids.join(', ')}${n > ids.length ? ', …' : ''}).`);
}

function requestFigures() {
  const columns = [
    { title: '', class: 'text', text: (of) => of.name },
    { title: 'n', text: (of) => count(of.quantiles.n) },
    ...['mean', 'p50', 'p90', 'p99', 'max'].map((name) => ({ title: name, text: (of) => duration(of.quantiles[`${name}_ns`]) })),
    { title: '', class: 'text', text: (of) => element('small', {}, of.meaning) },
  ];
  const known = data.request_figures.filter((of) => of.quantiles.n > 0);
  const absent = data.request_figures.filter((of) => of.quantiles.n === 0).map((of) => of.name);
  return [
    figure('Figures of all requests', table(columns, known), 'request_summary'),
    absent.length > 0 && element('p', { class: 'soft' }, `Not in this trace: ${absent.join(', ')}.`),
    outOfOrder(),
    data.requests.n < 30 && element('p', { class: 'soft' }, `p90 and p99 of only ${count(data.requests.n)} requests say little.`),
  ];
}

/** Where the time of the mean request, the one slower than 99 in 100, and the slowest goes. */
function requestParts() {
  const { parts, ...of } = data.request_parts;
  if (parts.length === 0) return undefined;
  const rows = [
    ['mean', 'mean_ns', of.e2e_mean_ns, ''],
    ['p99', 'p99_ns', of.e2e_p99_ns, of.p99_id],
    ['slowest', 'slowest_ns', of.e2e_slowest_ns, of.slowest_id],
  ];
  const columns = [
    { title: '', class: 'text', text: ([name, , , id]) => (id ? `${name} (${id})` : name) },
    ...parts.map((part) => ({ title: part.name, text: ([, key]) => duration(part[key]) })),
    { title: 'E2E', text: ([, , whole]) => duration(whole) },
    { title: '', class: 'wide', text: ([, key, whole]) => bar(parts.map((part, nth) => ({ name: part.name, ns: part[key], nth })), whole) },
  ];
  return figure('Where a request’s time goes', [table(columns, rows), partLegend()], 'request_parts');
}

/** The orders of phases that requests went through in the engine. */
function phases() {
  const { n, sequences } = data.phases;
  const columns = [
    { title: 'phases', class: 'text', text: ({ sequence }) => sequence },
    { title: 'n', text: ({ requests }) => count(requests) },
    { title: 'share', text: ({ requests }) => share(requests, n) },
    { title: 'mean', text: ({ mean_ns: ns }) => duration(ns) },
    { title: 'each phase', class: 'text', text: ({ phase_mean_ns: all }) => all.map(duration).join(' → ') },
  ];
  return n > 0 && figure('Phases in the engine', table(columns, sequences, { most: SHOWN }));
}

/** What prompts have in common, and what the prefix cache or a KV connector had of that. */
function prefixes() {
  const { requests, n, prompt_tokens: all, tokens_without_hash: without, shared_share: seen, cached_share: cached, unique, shared, prefixes: list } = data.prefixes;
  if (n === 0) return undefined;
  const had = cached == null ? 'the trace does not say what the cache had' : `the cache had ${share(cached, 1)}`;
  const whole = (of) => count(Math.round(of));
  const percentiles = ['p50', 'p90', 'p95', 'p99'].map((name) => `${name} ${whole(unique[name])}`).join(', ');
  const columns = [
    { title: 'shared prefix', class: 'text', text: ({ prefix }) => prefix },
    { title: 'prompts', text: ({ requests }) => count(requests) },
    { title: 'tokens', text: ({ tokens: of }) => count(of) },
    { title: 'own', text: ({ own_tokens: of }) => count(of) },
    { title: 'saves', text: ({ saved_tokens: of }) => count(of) },
    { title: 'of all', text: ({ saved_share: of }) => share(of, 1) },
    { title: 'cache had', text: ({ hit_tokens: of }) => (of == null ? '' : count(of)) },
    { title: 'engine', class: 'text', text: ({ engine }) => processName(engine) },
  ];
  return figure('What prompts have in common', [
    element('p', {}, `${requests > n ? `${count(n)} of ${count(requests)}` : count(n)} prompts have recorded hashes. Of ${count(all - without)} tokens at best ${share(seen, 1)} were seen before in their engine; ${had}.`),
    element('p', {}, `Tokens of a prompt not seen before: ${percentiles}, at most ${count(unique.max)}.`),
    without > 0 && element('p', { class: 'soft' }, `${count(without)} more tokens are left out: only the first blocks of a prompt have hashes, at most 512.`),
    list.length > 0 && table(columns, list, { most: SHOWN }),
    shared > list.length && element('p', { class: 'soft' }, `${count(shared)} prefixes are shared. These save most.`),
  ]);
}

function partLegend() {
  return legend(data.request.part_names.map((name, nth) => ({ name, nth })));
}

/** A bar for each request: chosen by an id and a time, in an order, some at once. */
class RequestList {
  #order = ORDERS[0][1];
  #filter = '';
  #range;
  #first = 0;
  #found = [];
  #body = element('tbody');
  #says = element('span', { 'aria-live': 'polite' });

  constructor() {
    const orders = element('select', { 'aria-label': 'Order', onchange: (event) => this.#change(() => (this.#order = ORDERS[event.target.value][1])) },
      ORDERS.map(([name], nth) => element('option', { value: nth }, name)));
    const filter = element('input', { type: 'search', placeholder: 'id has …', 'aria-label': 'Part of an id', oninput: (event) => this.#change(() => (this.#filter = event.target.value)) });
    const step = (more) => () => this.#turn(more);
    this.element = element('div', { id: 'request-list' },
      element('div', { class: 'controls' }, orders, filter,
        element('button', { type: 'button', onclick: step(-SHOWN) }, '← before'), element('button', { type: 'button', onclick: step(SHOWN) }, 'next →'), this.#says),
      element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, element('tr', {},
        ['request', 'ended', 'arrival', 'TTFT', 'TPOT', 'tokens', 'E2E', ''].map((title, nth) => element('th', { class: nth < 2 ? 'text' : nth === 7 ? 'wide' : undefined }, title)))), this.#body)),
      partLegend());
    this.#find();
  }

  /** Shows only those that were under way between two times, in ns; all without one. */
  within(range) {
    this.#change(() => (this.#range = range));
  }

  #change(what) {
    what();
    this.#first = 0;
    this.#find();
  }

  #turn(more) {
    if (this.#first + more >= 0 && this.#first + more < this.#found.length) this.#first += more;
    this.#draw();
  }

  #find() {
    const { id, arrival_us: arrival, e2e_us: e2e } = data.request;
    const [from, to] = this.#range ?? [-Infinity, Infinity];
    const isWithin = (at) => arrival[at] == null ? !this.#range : arrival[at] * 1e3 <= to && (e2e[at] == null || (arrival[at] + e2e[at]) * 1e3 >= from);
    const found = [];
    for (let at = 0; at < id.length; at++) if (isWithin(at) && id[at].includes(this.#filter)) found.push(at);
    const keys = Float64Array.from(id, (_, at) => this.#order(at));
    this.#found = found.sort((a, b) => keys[a] - keys[b]);
    this.#draw();
  }

  #draw() {
    const shown = this.#found.slice(this.#first, this.#first + SHOWN);
    const whole = this.#found.reduce((most, at) => Math.max(most, data.request.e2e_us[at] ?? 0), 0);
    const last = this.#first + shown.length;
    this.#says.textContent = shown.length > 0 ? `${count(this.#first + 1)} to ${count(last)} of ${count(this.#found.length)}` : 'none';
    this.#body.replaceChildren(...shown.map((at) => this.#row(at, whole)));
  }

  #row(at, whole) {
    const of = data.request;
    const us = (time) => duration(time == null ? undefined : time * 1e3);
    const parts = of.parts_us[at].map(([nth, time]) => ({ name: of.part_names[nth], ns: time * 1e3, nth }));
    return element('tr', {},
      element('td', { class: 'text' }, of.id[at]), element('td', { class: 'text' }, of.status[at]),
      [us(of.arrival_us[at]), us(of.ttft_us[at]), us(of.tpot_us[at]), count(of.output_tokens[at]), us(of.e2e_us[at])].map((text) => element('td', {}, text)),
      element('td', { class: 'wide' }, bar(parts, whole * 1e3, true)));
  }
}
