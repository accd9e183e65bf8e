// Requests /stats each second and draws it.
(() => {
'use strict';
const EVERY_MS = 1000;

// The token stays in the address, so that the page survives a reload. The server tells browsers not to send the address to other sites (`Referrer-Policy`).
const token = new URLSearchParams(location.search).get('token');

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const time = (ns) => {
  if (ns === null || ns === undefined) return '–';
  const size = Math.abs(ns);
  for (const [unit, factor] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
    if (size >= factor) return `${(ns / factor).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
};
const count = (number) => number === null || number === undefined ? '–' : number.toLocaleString('en');
const rate = (number) => number === null ? '–' : number >= 100 ? count(Math.round(number)) : number.toFixed(1);
const share = (part) => part === null || part === undefined ? '–' : `${(100 * part).toFixed(1)} %`;
const bytes = (number) => {
  for (const [unit, factor] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
    if (number >= factor) return `${(number / factor).toPrecision(3)} ${unit}`;
  }
  return `${number} B`;
};
const sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);

const table = (title, columns, rows) => {
  const section = element('section');
  section.append(element('h2', title));
  if (rows.length === 0) {
    section.append(element('p', 'None so far.', {class: 'soft'}));
    return section;
  }
  const scroll = element('div', null, {class: 'scroll'});
  const drawn = element('table');
  const head = element('tr');
  for (const [name, isText] of columns) head.append(element('th', name, isText ? {class: 'text'} : {}));
  drawn.append(head);
  for (const row of rows) {
    const line = element('tr');
    row.forEach((cell, number) => line.append(element('td', cell, columns[number][1] ? {class: 'text'} : {})));
    drawn.append(line);
  }
  scroll.append(drawn);
  section.append(scroll);
  return section;
};

const tiles = (pairs) => {
  const all = element('div', null, {class: 'tiles'});
  for (const [name, value] of pairs) {
    const tile = element('div');
    tile.append(element('b', value), element('span', name));
    all.append(tile);
  }
  return all;
};

const SVG = 'http://www.w3.org/2000/svg';
const drawn = (tag, attributes, text) => {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

/** Draws `lines`, each with a name, a colour and values. Values may be missing. A value is valid for a whole part of the time, so lines have steps. */
const plot = (title, {past, state}, unit, lines) => {
  const figure = element('figure');
  figure.append(element('figcaption', title));
  const parts = past.in_flight.length;
  const most = Math.max(...lines.flatMap(([, , values]) => values.map((value) => value ?? 0)), 0);
  const svg = drawn('svg', {class: 'plot', viewBox: `0 0 ${parts} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: at most ${unit(most)}`});
  const legend = element('div', null, {class: 'legend'});
  for (const [name, colour, values] of lines) {
    const steps = values.map((value, at) => {
      if (value === null) return '';
      const height = 98 - 94 * (most > 0 ? value / most : 0);
      return `${at > 0 && values[at - 1] !== null ? 'L' : 'M'}${at} ${height}H${at + 1}`;
    });
    const path = drawn('path', {d: steps.join(''), style: `stroke: var(--${colour})`});
    path.append(drawn('title', {}, name));
    svg.append(path);
    const label = element('span');
    label.append(element('i', null, {style: `background: var(--${colour})`}), `${name}: ${unit(values.at(-1))}`);
    legend.append(label);
  }
  const ends = element('div', null, {class: 'ends'});
  const length = time(parts * past.part_ns);
  const [from, to] = state === 'ended' ? [`${length} before the end`, 'end'] : [`${length} ago`, 'now'];
  ends.append(element('span', from), element('span', `max ${unit(most)}`), element('span', to));
  figure.append(svg, ends, legend);
  return figure;
};

/** Draws the run from its first request until now. */
const charts = (stats) => {
  const {past} = stats;
  const section = element('section');
  const grid = element('div', null, {class: 'grid'});
  grid.append(
    plot('Requests', stats, count, [['in flight', 'soft', past.in_flight], ['running', 'decode', past.running], ['queued', 'queue', past.waiting]]),
    plot('KV cache use', stats, share, [['KV cache use', 'transfer', past.kv_used]]),
    plot('Output tokens per second', stats, rate, [['output tokens', 'decode', past.output_tokens_per_s]]),
    plot('Answered requests per second', stats, rate, [['answered', 'answer', past.requests_per_s]]),
    plot('Mean TTFT', stats, time, [['TTFT', 'prefill', past.ttft_ns]]));
  section.append(grid, element('p', `Each step of a line is ${time(past.part_ns)}.`, {class: 'soft'}));
  return section;
};

const figures = (stats) => {
  const kinds = [['TTFT', 'ttft'], ['TPOT', 'tpot'], ['ITL', 'itl'], ['E2E', 'e2e'], ['queue', 'queue']];
  const rows = kinds.map(([name, key]) => {
    const all = stats.requests[key];
    const window = stats.last_60_s[key];
    return [name, count(all.n), time(all.mean_ns), time(all.p50_ns), time(all.p90_ns), time(all.p99_ns),
      count(window.n), time(window.mean_ns), time(window.p50_ns), time(window.p99_ns)];
  });
  return table('Requests', [['', true], ['n'], ['mean'], ['p50'], ['p90'], ['p99'], ['last minute: n'], ['mean'], ['p50'], ['p99']], rows);
};

const requests = (title, list) => table(title,
  [['request', true], ['status', true], ['ended ago'], ['queue'], ['TTFT'], ['TPOT'], ['E2E'], ['prompt'], ['output']],
  list.map((one) => [one.request_id, one.reason ? `${one.status} (${one.reason})` : one.status, time(one.ended_ago_ns), time(one.queue_ns),
    time(one.ttft_ns), time(one.tpot_ns), time(one.e2e_ns), count(one.prompt_tokens), count(one.output_tokens)]));

const notes = (stats) => {
  const lag = stats.behind;
  const lost = sum(stats.recorded.lost);
  const skipped = lag.damaged_blocks + lag.damaged_lines + lag.skipped_events + lag.skipped_segments + lag.unreadable_files + lag.out_of_time + lag.late_moments;
  const all = [];
  if (stats.no_event_for_ns >= 3e9) all.push(`No event for ${Math.floor(stats.no_event_for_ns / 1e9)} s.`);
  if (lost) all.push(`${count(lost)} ${lost === 1 ? 'event was' : 'events were'} lost: ${Object.entries(stats.recorded.lost).map(([cause, events]) => `${count(events)} ${cause}`).join(', ')}.`);
  if (lag.missing_bytes > 0) all.push(`${bytes(lag.missing_bytes)} of the recording are missing.`);
  if (lag.behind_ns > 2e9) all.push(`These figures are ${time(lag.behind_ns)} and ${bytes(lag.unread_bytes)} behind the run.`);
  if (skipped) all.push(`${count(skipped)} ${skipped === 1 ? 'event or piece of data' : 'events or pieces of data'} could not be read, or came too late.`);
  if (stats.not_final) all.push(`The whole run could not be read again: ${stats.not_final}.`);
  return all;
};

const draw = (stats) => {
  const recorded = stats.recorded;
  const state = {waiting: 'No run has started yet.', live: 'is running.', ended: recorded.alive > 0 ? 'was still running when this snapshot was taken.' : stats.is_final ? 'has ended; these are the figures of its report.' : 'has ended.'}[stats.state];
  document.getElementById('title').textContent = `${stats.run} ${state}`;
  document.getElementById('notes').replaceChildren(...notes(stats).map((text) => element('span', `${text} `, {class: 'warning'})));
  const ended = stats.requests.ok + stats.requests.aborted + stats.requests.failed;
  document.getElementById('live').replaceChildren(
    tiles([['processes alive', `${recorded.alive} of ${recorded.alive + recorded.ended + recorded.died}`], ['events', count(recorded.events)], ['read', bytes(recorded.bytes)],
      ['requests ended', count(ended)], [stats.state === 'ended' ? 'unfinished' : 'in flight', count(stats.unfinished)], ['aborted, failed', count(stats.requests.aborted + stats.requests.failed)],
      ['output tokens', count(stats.requests.output_tokens)]]),
    ...(stats.past.in_flight.length > 0 ? [charts(stats)] : []),
    figures(stats),
    table('Engines', [['engine', true], ['pid'], ['running'], ['queued'], ['KV cache use'], ['steps'], ['prefill tokens'], ['decode tokens']],
      stats.engine.map((one) => [one.name, one.pid, count(one.running), count(one.waiting), share(one.kv_used), count(one.steps), count(one.prefill_tokens), count(one.decode_tokens)])),
    table('Devices', [['device', true], ['slices'], ['busy'], ['last 10 s'], ['last minute'], ['since its first slice']],
      stats.device.map((one) => [one.is_runner ? `${one.name} (steps)` : one.name, count(one.slices), time(one.busy_ns), share(one.busy_10_s), share(one.busy_60_s), share(one.wall_ns ? one.busy_ns / one.wall_ns : null)])),
    requests('The latest requests', stats.latest),
    requests('The slowest requests', stats.slowest),
    table('Names', [['name', true], ['category', true], ['kind', true], ['slices'], ['total'], ['mean'], ['longest']],
      stats.names.map((one) => [one.name, one.category, one.row, count(one.ncall), time(one.total_ns), time(one.total_ns / one.ncall), time(one.max_ns)])),
    table('Processes', [['process', true], ['pid'], ['host', true], ['state', true], ['events'], ['read'], ['last event ago'], ['lost']],
      stats.process.map((one) => [one.name, one.pid, one.host, one.state, count(one.events), bytes(one.bytes), time(one.idle_ns), count(sum(one.lost))])),
  );
};

const update = async () => {
  try {
    const headers = token === null ? {} : {Authorization: `Bearer ${token}`};
    const answer = await fetch('stats', {headers, cache: 'no-store'});
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const stats = await answer.json();
    draw(stats);
  } catch (error) {
    document.getElementById('notes').replaceChildren(element('span', `The figures could not be updated: ${error.message}.`, {class: 'warning'}));
  }
  setTimeout(update, EVERY_MS);
};
update();
})();
