// The requests: summary figures, the parts of their time, and a bar for each.

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
  const words = `${counted(n, 'request has', 'requests have')} events out of order, for example because host clocks differ; figures between these events leave them out`;
  return n > 0 && element('p', { class: 'soft' }, `${words} (${ids.join(', ')}${n > ids.length ? ', …' : ''}).`);
}

function requestFigures() {
  const columns = [
    { title: 'figure', tip: 'the explanation of each figure says where it starts and ends', class: 'text', text: (row) => explained(element('span', { tabindex: 0 }, row.name), row.meaning) },
    { title: 'n', text: (row) => count(row.quantiles.n) },
    ...['mean', 'p50', 'p90', 'p99', 'max'].map((name) => ({ title: name, text: (row) => duration(row.quantiles[`${name}_ns`]) })),
  ];
  const present = data.request_figures.filter(({ quantiles }) => quantiles.n > 0);
  const absent = data.request_figures.filter(({ quantiles }) => quantiles.n === 0).map(({ name }) => name);
  return [
    figure(`${counted(data.requests.n, 'request', 'requests')}: ${outcomes()}`, table(columns, present), 'request_summary'),
    absent.length > 0 && element('p', { class: 'soft' }, `Not recorded: ${absent.join(', ')}.`),
    outOfOrder(),
    data.requests.n < 30 && element('p', { class: 'soft' }, `p90 and p99 of only ${counted(data.requests.n, 'request', 'requests')} say little.`),
  ];
}

/** Returns the outcomes of the requests, and their rate. */
function outcomes() {
  const { ok, aborted, failed, unfinished, requests_per_s: rate, output_tokens_per_s: tokens } = data.requests;
  const ends = [[ok, 'ok'], [failed, 'failed'], [aborted, 'aborted'], [unfinished, 'unfinished']].filter(([n]) => n > 0);
  const words = ends.length === 1 && ends[0][0] > 1 ? `all ${ends[0][1]}` : ends.map(([n, word]) => `${count(n)} ${word}`).join(', ');
  const rates = [rate != null && `${rate.toFixed(1)} answered per second`, tokens != null && `${count(tokens)} output tokens per second`].filter(Boolean);
  return [words, rates.join(', ')].filter(Boolean).join('; ');
}

/** Returns the parts of the time of the mean request, of the one at the 99th percentile, and of the slowest. */
function requestParts() {
  const { n, parts, ...figures } = data.request_parts;
  if (parts.length === 0) return undefined;
  const { e2e } = data.requests;
  const colour = partColours();
  const wholes = { mean_ns: figures.e2e_mean_ns, p99_ns: figures.e2e_p99_ns, slowest_ns: figures.e2e_slowest_ns };
  const pictures = [['mean_ns', 'mean'], ['p99_ns', `p99 (${figures.p99_id})`], ['slowest_ns', `slowest (${figures.slowest_id})`]].map(([key, name]) => [
    element('span', { class: 'text' }, name), bar(parts.map((part) => ({ name: part.name, ns: part[key], colours: colour.get(part.name) })), wholes[key])]);
  const columns = [
    { title: 'part', tip: 'the parts add up to E2E', class: 'text', text: ({ name }) => [name !== 'E2E' && chip(colour.get(name)), name] },
    { title: 'mean', tip: 'of all requests whose start and end are known', text: ({ mean_ns: ns }) => (ns == null ? '' : duration(ns)) },
    { title: 'share', tip: 'the share of the mean E2E', text: ({ mean_ns: ns }) => (ns == null ? '' : share(ns, figures.e2e_mean_ns)) },
    { title: 'p99', tip: `the request that took longer than 99 % of all: ${figures.p99_id}`, text: ({ p99_ns: ns }) => duration(ns) },
    { title: 'slowest', tip: `the request that took longest: ${figures.slowest_id}`, text: ({ slowest_ns: ns }) => duration(ns) },
  ];
  // The page has one mean E2E. If some requests have no parts, the mean of the others would be a second one.
  const whole = { name: 'E2E', ...wholes, mean_ns: n === e2e.n ? e2e.mean_ns : undefined };
  return figure('Where a request’s time goes', [element('div', { class: 'bars' }, pictures), table(columns, [...parts, whole])], 'request_parts');
}

/** Returns the sequences of phases that requests went through in the engine. */
function phases() {
  const { n, sequences } = data.phases;
  const columns = [
    { title: 'phases', tip: 'the order in which requests went through the phases', class: 'text', text: ({ sequence }) => sequence },
    { title: 'n', tip: 'the number of requests', text: ({ requests }) => count(requests) },
    { title: 'share', tip: 'the share of all requests', text: ({ requests }) => share(requests, n) },
    { title: 'mean', tip: 'the mean time from the queue to the last token', text: ({ mean_ns: ns }) => duration(ns) },
    { title: 'each phase', tip: 'the mean time of each phase', class: 'text', text: ({ phase_mean_ns: all }) => all.map(duration).join(' → ') },
  ];
  return n > 0 && figure('Sequences of phases that requests went through', table(columns, sequences, { most: SHOWN }));
}

/** Returns the prefixes that prompts share, and the share of them that the prefix cache or a KV connector had. */
function prefixes() {
  const { requests, n, prompt_tokens: all, tokens_without_hash: without, shared_share: repeated, cached_share: cached, unique, shared, prefixes: list } = data.prefixes;
  if (n === 0) return undefined;
  const had = cached == null ? 'cache hits are not recorded' : `cache hits: ${share(cached, 1)}`;
  const whole = (tokens) => count(Math.round(tokens));
  const percentiles = ['p50', 'p90', 'p95', 'p99'].map((name) => `${name} ${whole(unique[name])}`).join(', ');
  const columns = [
    { title: 'shared prefix', tip: 'the hash of the last block that these prompts have in common', class: 'text', text: ({ prefix }) => prefix },
    { title: 'prompts', tip: 'the number of prompts that start with this prefix', text: ({ requests }) => count(requests) },
    { title: 'tokens', tip: 'the length of the prefix', text: ({ tokens }) => count(tokens) },
    { title: 'own', tip: 'tokens after the next shorter shared prefix', text: ({ own_tokens: tokens }) => count(tokens) },
    { title: 'saves', tip: 'tokens that all prompts except the first do not have to compute', text: ({ saved_tokens: tokens }) => count(tokens) },
    { title: 'share', tip: 'the saved tokens as a share of all tokens', text: ({ saved_share: part }) => share(part, 1) },
    { title: 'in cache', tip: 'the saved tokens that were in the cache', text: ({ hit_tokens: tokens }) => (tokens == null ? '' : count(tokens)) },
    { title: 'engine', tip: 'the engine that received these prompts', class: 'text', text: ({ engine }) => processName(engine) },
  ];
  return figure('Prefixes that prompts share', [
    element('p', {}, `${requests > n ? `${count(n)} of ${count(requests)}` : count(n)} prompts have recorded hashes. Of ${count(all - without)} tokens, at most ${share(repeated, 1)} had been seen before by their engine; ${had}.`),
    element('p', {}, `New tokens of a prompt: ${percentiles}, at most ${count(unique.max)}.`),
    without > 0 && element('p', { class: 'soft' }, `${count(without)} more tokens are left out: only the first blocks of a prompt have hashes, at most 512.`),
    list.length > 0 && table(columns, list, { most: SHOWN }),
    shared > list.length && element('p', { class: 'soft' }, `${count(shared)} prefixes are shared. These save the most tokens.`),
  ]);
}

/** Returns the colours of the parts of requests by name. */
function partColours() {
  return colours(data.request.part_names, partPhases);
}

const REQUEST_COLUMNS = [
  { title: 'request', class: 'text', tip: 'its id' },
  { title: 'ended', class: 'text', tip: 'its outcome: ok, aborted by the client, failed, or unfinished' },
  { title: 'arrival', tip: 'its arrival, from the start of the trace' },
  { title: 'TTFT', tip: 'time to first token: from arrival until the first part of the response left' },
  { title: 'TPOT', tip: 'time per output token after the first' },
  { title: 'tokens', tip: 'output tokens' },
  { title: 'E2E', tip: 'the time from arrival until the last part of the response left' },
  { title: 'parts', class: 'wide', tip: 'the parts of its time; the longest bar belongs to the slowest request of this list' },
];

/** A list of requests with a bar for each, filtered by id and time, sorted, and divided into pages. */
class RequestList {
  #order = ORDERS[0][1];
  #filter = '';
  #window;
  #colours = partColours();
  #first = 0;
  #found = [];
  #body = element('tbody');
  #status = element('span', { 'aria-live': 'polite' });

  /** Shows the requests that were in flight in `window`. */
  constructor(window) {
    this.#window = window;
    window.follow(() => this.#change());
    const orders = element('select', { 'aria-label': 'Order', onchange: (event) => this.#change(() => (this.#order = ORDERS[event.target.value][1])) },
      ORDERS.map(([name], nth) => element('option', { value: nth }, name)));
    const filter = element('input', { type: 'search', placeholder: 'id contains …', 'aria-label': 'Part of an id', oninput: (event) => this.#change(() => (this.#filter = event.target.value)) });
    const step = (more) => () => this.#turn(more);
    this.element = element('div', { id: 'request-list' },
      element('div', { class: 'controls' }, orders, filter,
        element('button', { type: 'button', onclick: step(-SHOWN) }, '← previous'), element('button', { type: 'button', onclick: step(SHOWN) }, 'next →'), this.#status),
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
    this.#status.textContent = shown.length > 0 ? `${count(this.#first + 1)} to ${count(last)} of ${count(this.#found.length)}` : 'none';
    this.#body.replaceChildren(...shown.map((at) => this.#row(at, whole)));
  }

  #row(at, whole) {
    const { request } = data;
    const us = (time) => duration(time == null ? undefined : time * 1e3);
    const parts = request.parts_us[at].map(([nth, time]) => ({ name: request.part_names[nth], ns: time * 1e3, colours: this.#colours.get(request.part_names[nth]) }));
    return element('tr', {},
      element('td', { class: 'text' }, request.id[at]), element('td', { class: 'text' }, request.status[at]),
      [us(request.arrival_us[at]), us(request.ttft_us[at]), us(request.tpot_us[at]), count(request.output_tokens[at]), us(request.e2e_us[at])].map((text) => element('td', {}, text)),
      element('td', { class: 'wide' }, bar(parts, whole * 1e3, true)));
  }
}
