// The requests: figures of all, where their time goes, and a bar for each.

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
  const words = `${counted(n, 'request has', 'requests have')} moments out of order, as when clocks of hosts are apart: left out of the figures between them`;
  return n > 0 && element('p', { class: 'soft' }, `${words} (${ids.join(', ')}${n > ids.length ? ', …' : ''}).`);
}

function requestFigures() {
  const columns = [
    { title: 'figure', tip: 'each figure says from where to where it counts', class: 'text', text: (of) => explained(element('span', { tabindex: 0 }, of.name), of.meaning) },
    { title: 'n', text: (of) => count(of.quantiles.n) },
    ...['mean', 'p50', 'p90', 'p99', 'max'].map((name) => ({ title: name, text: (of) => duration(of.quantiles[`${name}_ns`]) })),
  ];
  const known = data.request_figures.filter((of) => of.quantiles.n > 0);
  const absent = data.request_figures.filter((of) => of.quantiles.n === 0).map((of) => of.name);
  return [
    figure(`${counted(data.requests.n, 'request', 'requests')}: ${outcomes()}`, table(columns, known), 'request_summary'),
    absent.length > 0 && element('p', { class: 'soft' }, `Not in this trace: ${absent.join(', ')}.`),
    outOfOrder(),
    data.requests.n < 30 && element('p', { class: 'soft' }, `p90 and p99 of only ${counted(data.requests.n, 'request', 'requests')} say little.`),
  ];
}

/** Returns how the requests ended, and their rate. */
function outcomes() {
  const { ok, aborted, failed, unfinished, requests_per_s: rate, output_tokens_per_s: tokens } = data.requests;
  const ends = [[ok, 'ok'], [aborted, 'aborted'], [failed, 'failed'], [unfinished, 'unfinished']].filter(([n]) => n > 0).map(([n, word]) => `${count(n)} ${word}`);
  return [ends.join(', '), rate != null && `${rate.toFixed(1)} a second`, tokens != null && `${count(tokens)} output tokens a second`].filter(Boolean).join('; ');
}

/** Returns the parts of the time of the mean request, of the one slower than 99 in 100, and of the slowest. */
function requestParts() {
  const { n, parts, ...of } = data.request_parts;
  if (parts.length === 0) return undefined;
  const { e2e } = data.requests;
  const colour = partColours();
  const wholes = { mean_ns: of.e2e_mean_ns, p99_ns: of.e2e_p99_ns, slowest_ns: of.e2e_slowest_ns };
  const pictures = [['mean_ns', 'mean'], ['p99_ns', `p99 (${of.p99_id})`], ['slowest_ns', `slowest (${of.slowest_id})`]].map(([key, name]) => [
    element('span', { class: 'text' }, name), bar(parts.map((part) => ({ name: part.name, ns: part[key], colours: colour.get(part.name) })), wholes[key])]);
  const columns = [
    { title: 'part', tip: 'the parts add up to E2E', class: 'text', text: ({ name }) => [name !== 'E2E' && chip(colour.get(name)), name] },
    { title: 'mean', tip: 'of all requests whose start and end are known', text: ({ mean_ns: ns }) => (ns == null ? '' : duration(ns)) },
    { title: 'share', tip: 'the share of the mean E2E', text: ({ mean_ns: ns }) => (ns == null ? '' : share(ns, of.e2e_mean_ns)) },
    { title: 'p99', tip: `the request that took longer than 99 in 100: ${of.p99_id}`, text: ({ p99_ns: ns }) => duration(ns) },
    { title: 'slowest', tip: `the request that took longest: ${of.slowest_id}`, text: ({ slowest_ns: ns }) => duration(ns) },
  ];
  // The page has one mean E2E. If some requests have no parts, the mean of the others would be a second one.
  const whole = { name: 'E2E', ...wholes, mean_ns: n === e2e.n ? e2e.mean_ns : undefined };
  return figure('Where a request’s time goes', [element('div', { class: 'bars' }, pictures), table(columns, [...parts, whole])], 'request_parts');
}

/** The orders of phases that requests went through in the engine. */
function phases() {
  const { n, sequences } = data.phases;
  const columns = [
    { title: 'phases', tip: 'the order in which requests went through the phases', class: 'text', text: ({ sequence }) => sequence },
    { title: 'n', tip: 'the number of requests', text: ({ requests }) => count(requests) },
    { title: 'share', tip: 'the share of all requests', text: ({ requests }) => share(requests, n) },
    { title: 'mean', tip: 'the mean time from the queue to the last token', text: ({ mean_ns: ns }) => duration(ns) },
    { title: 'each phase', tip: 'the mean time of each phase', class: 'text', text: ({ phase_mean_ns: all }) => all.map(duration).join(' → ') },
  ];
  return n > 0 && figure('The orders in which requests went through the phases', table(columns, sequences, { most: SHOWN }));
}

/** What prompts have in common, and what the prefix cache or a KV connector had of that. */
function prefixes() {
  const { requests, n, prompt_tokens: all, tokens_without_hash: without, shared_share: seen, cached_share: cached, unique, shared, prefixes: list } = data.prefixes;
  if (n === 0) return undefined;
  const had = cached == null ? 'the trace does not say what the cache had' : `the cache had ${share(cached, 1)}`;
  const whole = (of) => count(Math.round(of));
  const percentiles = ['p50', 'p90', 'p95', 'p99'].map((name) => `${name} ${whole(unique[name])}`).join(', ');
  const columns = [
    { title: 'shared prefix', tip: 'the hash of the last block that these prompts have in common', class: 'text', text: ({ prefix }) => prefix },
    { title: 'prompts', tip: 'prompts that begin with this prefix', text: ({ requests }) => count(requests) },
    { title: 'tokens', tip: 'the length of the prefix', text: ({ tokens: of }) => count(of) },
    { title: 'own', tip: 'tokens after the next shorter shared prefix', text: ({ own_tokens: of }) => count(of) },
    { title: 'saves', tip: 'tokens that all but the first prompt need not compute', text: ({ saved_tokens: of }) => count(of) },
    { title: 'of all', tip: 'what it saves, as a share of all tokens', text: ({ saved_share: of }) => share(of, 1) },
    { title: 'cache had', tip: 'tokens of it that the cache had', text: ({ hit_tokens: of }) => (of == null ? '' : count(of)) },
    { title: 'engine', tip: 'the engine that got these prompts', class: 'text', text: ({ engine }) => processName(engine) },
  ];
  return figure('What prompts have in common', [
    element('p', {}, `${requests > n ? `${count(n)} of ${count(requests)}` : count(n)} prompts have recorded hashes. Of ${count(all - without)} tokens at best ${share(seen, 1)} were seen before in their engine; ${had}.`),
    element('p', {}, `Tokens of a prompt not seen before: ${percentiles}, at most ${count(unique.max)}.`),
    without > 0 && element('p', { class: 'soft' }, `${count(without)} more tokens are left out: only the first blocks of a prompt have hashes, at most 512.`),
    list.length > 0 && table(columns, list, { most: SHOWN }),
    shared > list.length && element('p', { class: 'soft' }, `${count(shared)} prefixes are shared. These save most.`),
  ]);
}

/** Returns the colours of the parts of requests, by their names. */
function partColours() {
  return colours(data.request.part_names, partPhases);
}

const REQUEST_COLUMNS = [
  { title: 'request', class: 'text', tip: 'its id' },
  { title: 'ended', class: 'text', tip: 'how it ended: ok, aborted by the client, failed, or unfinished' },
  { title: 'arrival', tip: 'when it arrived, from the start of the trace' },
  { title: 'TTFT', tip: 'time to first token: from arrival until the first part of the answer left' },
  { title: 'TPOT', tip: 'time per output token after the first' },
  { title: 'tokens', tip: 'output tokens' },
  { title: 'E2E', tip: 'from arrival until the last part of the answer left' },
  { title: 'parts', class: 'wide', tip: 'where its time went; the longest bar is the slowest request of this list' },
];

/** A bar for each request: chosen by an id and a time, in an order, some at once. */
class RequestList {
  #order = ORDERS[0][1];
  #filter = '';
  #window;
  #colours = partColours();
  #first = 0;
  #found = [];
  #body = element('tbody');
  #says = element('span', { 'aria-live': 'polite' });

  /** Shows the requests that were in flight in `window`. */
  constructor(window) {
    this.#window = window;
    window.follow(() => this.#change());
    const orders = element('select', { 'aria-label': 'Order', onchange: (event) => this.#change(() => (this.#order = ORDERS[event.target.value][1])) },
      ORDERS.map(([name], nth) => element('option', { value: nth }, name)));
    const filter = element('input', { type: 'search', placeholder: 'id has …', 'aria-label': 'Part of an id', oninput: (event) => this.#change(() => (this.#filter = event.target.value)) });
    const step = (more) => () => this.#turn(more);
    this.element = element('div', { id: 'request-list' },
      element('div', { class: 'controls' }, orders, filter,
        element('button', { type: 'button', onclick: step(-SHOWN) }, '← before'), element('button', { type: 'button', onclick: step(SHOWN) }, 'next →'), this.#says),
      element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, element('tr', {}, REQUEST_COLUMNS.map((column) => columnHead(column)))), this.#body)),
      legend(data.request.part_names.map((name) => ({ name, colours: this.#colours.get(name) }))));
    this.#find();
  }

  #change(what = () => {}) {
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
    const { isWhole } = this.#window;
    const [from, to] = isWhole ? [-Infinity, Infinity] : this.#window.real;
    const isWithin = (at) => arrival[at] == null ? isWhole : arrival[at] * 1e3 <= to && (e2e[at] == null || (arrival[at] + e2e[at]) * 1e3 >= from);
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
    const parts = of.parts_us[at].map(([nth, time]) => ({ name: of.part_names[nth], ns: time * 1e3, colours: this.#colours.get(of.part_names[nth]) }));
    return element('tr', {},
      element('td', { class: 'text' }, of.id[at]), element('td', { class: 'text' }, of.status[at]),
      [us(of.arrival_us[at]), us(of.ttft_us[at]), us(of.tpot_us[at]), count(of.output_tokens[at]), us(of.e2e_us[at])].map((text) => element('td', {}, text)),
      element('td', { class: 'wide' }, bar(parts, whole * 1e3, true)));
  }
}
