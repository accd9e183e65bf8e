// The page: its sections in the order in which they are best read.

const data = JSON.parse(document.getElementById('data').textContent);

const OF = { device_time: 'device time', request_time: 'a request’s time', wall_time: 'the run’s time', requests: 'the requests', figures: 'the events' };

const MANY = 20;

function recorded() {
  const { recorded } = data;
  const tile = (amount, name) => element('div', {}, element('b', {}, amount), element('span', {}, name));
  const ends = recorded.processes.filter(({ end }) => end).map(({ name, pid, end }) => `${name ?? pid} was ${end}`);
  const uncertain = recorded.processes.reduce((most, { clock_uncertainty_ns: ns }) => Math.max(most, ns ?? 0), 0);
  const missing = [
    recorded.lost_events > 0 && `${count(recorded.lost_events)} events are lost.`,
    recorded.losses.length > 0 && `${count(recorded.losses.length)} losses touch the figures below.`,
    recorded.unfinished > 0 && `${count(recorded.unfinished)} spans have no end, and count nowhere.`,
    recorded.refused_processes > 0 && `${count(recorded.refused_processes)} processes recorded nothing.`,
    recorded.damaged > 0 && `${count(recorded.damaged)} places in the inputs could not be read.`,
    uncertain > 0 && `Times of different hosts may be off by ${duration(uncertain)}.`,
    ends.length > 0 && `${ends.slice(0, MANY).join(', ')}${ends.length > MANY ? `, and ${count(ends.length - MANY)} more` : ''}.`,
    ...recorded.cautions.map((text) => `${text}.`),
  ].filter(Boolean);
  const { ttft, tpot, e2e } = data.requests;
  const busy = data.device.reduce((sum, of) => sum + of.busy_ns, 0);
  const wall = data.device.reduce((sum, of) => sum + of.wall_ns, 0);
  return [
    element('div', { class: 'tiles' },
      tile(duration(recorded.wall_ns), 'recorded'), tile(count(recorded.processes.filter(({ is_tracks: of }) => !of).length), 'processes'), tile(count(recorded.events), 'events'),
      data.requests.n > 0 && tile(count(data.requests.n), `requests, ${count(data.requests.ok)} ok`),
      ttft.n > 0 && tile(`${duration(ttft.p50_ns)} / ${duration(ttft.p99_ns)}`, 'TTFT p50 / p99'), tpot.n > 0 && tile(`${duration(tpot.p50_ns)} / ${duration(tpot.p99_ns)}`, 'TPOT p50 / p99'),
      e2e.n > 0 && tile(`${duration(e2e.p50_ns)} / ${duration(e2e.p99_ns)}`, 'E2E p50 / p99'), wall > 0 ? tile(share(busy, wall), 'devices busy') : data.worker.length > 0 && tile('none', 'devices recorded')),
    missing.length > 0 ? missing.map((text) => element('p', { class: 'warning' }, text)) : element('p', { class: 'soft' }, 'No known losses.'),
    statement('recorded'),
  ];
}

function findings() {
  const nothing = data.findings.length === 0 && element('p', {}, 'Nothing stands out by the rules of docs/time.md.');
  const found = data.findings.map((of) => element('div', { class: 'finding' },
    element('b', {}, `${words(of.rule)} (${share(of.cost, 1)} of ${OF[of.of]})`), `: ${of.evidence}`, element('p', { class: 'soft' }, `Try: ${of.advice}.`)));
  return [nothing, ...found, ...data.unrecognized.map((text) => element('p', { class: 'soft' }, `${text[0].toUpperCase()}${text.slice(1)}.`))];
}

function load() {
  const percent = (of) => (value) => (of === 'kv_used_percent' ? `${value.toFixed(1)} %` : value.toFixed(1));
  const columns = [
    { title: 'level', class: 'text', text: ({ of, process }) => (process == null ? words(of) : `${words(of)}, ${processName(process)}`) },
    ...['mean', 'p50', 'p90', 'p99', 'max'].map((name) => ({ title: name, text: (level) => percent(level.of)(level[name]) })),
  ];
  return data.load.length > 0 && figure('Levels, weighted by time', table(columns, data.load));
}

const REFUSED = {
  few_points: 'three points of 20 requests are needed, at other numbers under way',
  not_linear: 'the points lie too far from a line (R² below 0.7)',
  not_rising: 'it does not grow with their number',
};

/** How times grow with the requests under way, and what a line through the points says. */
function sizing() {
  const advice = ({ refused, target_ns: target, concurrency: many, is_beyond: isBeyond }) => {
    if (refused) return `no advice: ${REFUSED[refused]}`;
    if (target == null) return '';
    if (many === 0) return `${duration(target)} does not hold even for one`;
    return `${duration(target)} holds up to ${many}${isBeyond ? ', the highest point, and maybe beyond' : ''}`;
  };
  const point = (of) => `${of.concurrency.toFixed(1)}: ${duration(of.p95_ns)}`;
  const columns = [
    { title: 'p95 of', class: 'text', text: ({ of }) => words(of) },
    { title: 'at so many requests', class: 'text', text: ({ points }) => points.map(point).join(', ') },
    { title: 'each one more', text: ({ fit }) => (fit ? duration(fit.slope_ns) : '') },
    { title: 'R²', text: ({ fit }) => (fit ? fit.r_squared.toFixed(2) : '') },
    { title: '', class: 'text', text: advice },
  ];
  return data.sizing.length > 0 && figure('Time against requests under way', table(columns, data.sizing));
}

/** One section that fails leaves the others. */
function attempt(body) {
  try {
    return body();
  } catch (error) {
    setTimeout(() => { throw error; }); // for the console
    return element('p', { class: 'warning' }, `This cannot be shown: ${error.message}`);
  }
}

function leftOut() {
  const { left_out: n } = data.timeline;
  return n > 0 && element('p', { class: 'soft' }, `${count(n)} more series are left out.`);
}

function build() {
  const { request } = data;
  const list = request.id.length > 0 && new RequestList();
  const timeline = data.timeline.series.length > 0 && new Timeline((range) => list && list.within(range));
  const none = 'No event names a request: docs/time.md says which ones to write.';
  const sections = [
    ['recorded', 'What was recorded', recorded],
    ['findings', 'What stands out', findings],
    ['requests', 'Requests', () => list ? [requestFigures(), requestParts(), phases(), prefixes(), element('div', { class: 'grid' },
      distribution('E2E', request.e2e_us, data.requests.e2e), distribution('TTFT', request.ttft_us, data.requests.ttft), distribution('TPOT', request.tpot_us, data.requests.tpot))] : element('p', {}, none)],
    ['time', 'Over time', () => timeline && [timeline.element, leftOut(), load(), sizing()]],
    ['each', 'Each request', () => list && list.element],
    ['devices', data.device.length > 0 ? 'Devices' : 'Workers', () => data.device.length + data.worker.length > 0 && [deviceTable(), workerTable(), streamTable(), idleBars(), hostTable(), rankMatrix(), rankTable()]],
    ['slowest', 'What took longest', () => [slowSteps(), longGaps()]],
    ['stacks', 'Stacks', () => data.stacks.length > 0 && [new Flame().element]],
    ['names', 'Names', () => data.names.length > 0 && nameTable()],
  ];
  document.getElementById('title').textContent = `${data.title} · sa-profile ${data.version}`;
  document.title = `${data.title}: where the time went`;
  for (const [id, title, body] of sections) {
    const shown = [attempt(body)].flat(3).filter(Boolean);
    if (shown.length === 0) continue;
    document.getElementById('contents').append(element('a', { href: `#${id}` }, title));
    document.getElementById('report').append(element('section', { id }, element('h2', {}, title), shown));
  }
  if (!timeline) return;
  timeline.draw();
  const redraw = () => timeline.draw();
  let waits;
  addEventListener('resize', () => {
    clearTimeout(waits);
    waits = setTimeout(redraw, 100);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}

build();
