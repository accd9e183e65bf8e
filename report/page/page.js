// The page: its sections in reading order.

const WHOLES = { device_time: 'device time', request_time: 'a request’s time', wall_time: 'the serving time', requests: 'the requests', figures: 'the events' };
const MANY = 20;
/** Width of charts on paper, in px. */
const PAPER = 680;

/** Returns a text with a capital letter and a full stop. */
function sentence(text) {
  return text && `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

/** Returns a text with the parts between backticks as code. */
function marked(text) {
  return text.split('`').map((part, nth) => (nth % 2 === 1 ? element('code', {}, part) : part));
}

/** Returns the verdict: what limited the server, the advice, and the command that shows the place. */
function verdict() {
  const { rule, text, advice, evidence, place } = data.verdict;
  return text !== '' && element('div', { class: `verdict ${rule === 'nothing' || rule === 'unknown' ? 'calm' : ''}` },
    element('p', { class: 'answer' }, marked(text)), advice && element('p', {}, marked(sentence(advice))), evidence && element('p', { class: 'soft' }, marked(evidence)),
    place && element('p', {}, opens(place.from_ns, place.dur_ns)));
}

/** Returns the reasons to read the figures with care. */
function missing() {
  const { recorded } = data;
  const ends = recorded.processes.filter(({ end }) => end).map(({ name, pid, end }) => `${name ?? pid} was ${end}`);
  const uncertain = recorded.processes.reduce((most, { clock_uncertainty_ns: ns }) => Math.max(most, ns ?? 0), 0);
  return [
    recorded.lost_events > 0 && `${counted(recorded.lost_events, 'event was', 'events were')} lost.`,
    recorded.losses.length > 0 && `${counted(recorded.losses.length, 'loss affects', 'losses affect')} the figures of this page.`,
    recorded.unfinished > 0 && `${counted(recorded.unfinished, 'span has no end, and is', 'spans have no end, and are')} not included in any time.`,
    recorded.refused_processes > 0 && `${counted(recorded.refused_processes, 'process', 'processes')} recorded nothing.`,
    recorded.damaged > 0 && `${counted(recorded.damaged, 'place', 'places')} in the inputs could not be read.`,
    uncertain > 0 && `Times of different hosts may be off by ${duration(uncertain)}.`,
    ends.length > 0 && `${ends.slice(0, MANY).join(', ')}${ends.length > MANY ? `, and ${count(ends.length - MANY)} more` : ''}.`,
    ...recorded.cautions.map(sentence),
    ...data.unrecognized.map(sentence),
  ].filter(Boolean).map((text) => element('p', { class: 'warning' }, text));
}

function recorded() {
  const { recorded, serving } = data;
  const columns = [
    { title: 'process', tip: 'the process, or the group of tracks that it recorded', class: 'text', text: (of) => of.device_name ?? of.name ?? '' },
    { title: 'pid', tip: 'its process id', text: ({ pid }) => pid },
    { title: 'host', tip: 'the host on which it ran', class: 'text', text: ({ host }) => host ?? '' },
    { title: 'events', tip: 'the number of its events', text: ({ events }) => count(events), sort: ({ events }) => events },
    { title: 'last event', tip: 'the end of its last event, from the start of the trace', text: ({ last_ns: ns }) => duration(ns), sort: ({ last_ns: ns }) => ns },
    { title: 'ended', tip: 'how it ended, if it did not close its recording', class: 'text', text: ({ end, was_running: runs }) => end ?? (runs ? 'was running' : '') },
  ];
  const losses = [
    { title: 'process', tip: 'the process whose events are missing', class: 'text', text: ({ process, pid }) => process ?? pid },
    { title: 'cause', tip: 'the reason why they are missing', class: 'text', text: ({ cause }) => words(cause) },
    { title: 'events', tip: 'the number of missing events', text: ({ events }) => count(events), sort: ({ events }) => events },
    { title: 'from', tip: 'the time of the first missing event', text: ({ from_ns: ns }) => duration(ns) },
    { title: 'to', tip: 'the time of the last missing event', text: ({ to_ns: ns }) => duration(ns) },
  ];
  return [
    element('p', {}, `${duration(recorded.wall_ns)}, ${count(recorded.events)} events. The figures cover ${serving.is_whole ? 'the whole run' : `the serving time of ${duration(serving.wall_ns)}, from ${duration(serving.from_ns)} to ${duration(serving.to_ns)}`}.`),
    figure('Processes', table(columns, recorded.processes, { most: 100 }), 'recorded'),
    recorded.losses.length > 0 ? figure('Losses', table(losses, recorded.losses, { most: 100 }), 'losses') : element('p', { class: 'soft' }, 'No known losses.'),
  ];
}

/** Returns a card for each finding: its cost, the evidence, the advice and the command that shows the place. */
function findings(window) {
  if (data.findings.length === 0) return element('p', {}, 'Nothing stands out by the rules of docs/time.md.');
  const card = ({ rule, waited, cost, of: whole, evidence, advice, place }) => element('article', { class: 'card' },
    element('h3', {}, sentence(words(rule)).slice(0, -1)),
    element('p', { class: 'cost' }, waited > 0 && explained(element('b', { tabindex: 0 }, `${share(waited, 1)} of users’ waiting time`), 'the cost as a share of the time in which users waited for answers; the findings are ordered by it'),
      element('span', { class: 'soft' }, `${share(cost, 1)} of ${WHOLES[whole]}`)),
    element('p', {}, marked(sentence(evidence))), element('p', {}, element('b', {}, 'Try: '), marked(advice), /[.!?]$/.test(advice) ? '' : '.'),
    place && element('p', { class: 'controls' }, window && element('button', { type: 'button', onclick: () => window.showPlace(place) }, 'select this time'), opens(place.from_ns, place.dur_ns)));
  return element('div', { class: 'cards' }, data.findings.map(card));
}

/** Returns the spans of the start-up. */
function startUp() {
  const { wall_ns: wall, spans } = data.start_up;
  const columns = [
    { title: 'name', tip: 'the name of the spans', class: 'text', text: ({ name }) => name },
    { title: 'process', tip: 'the process that ran them', class: 'text', text: ({ process }) => processName(process) },
    { title: 'started at', tip: 'the start of the first one, from the start of the trace', text: ({ start_ns: ns }) => duration(ns), sort: ({ start_ns: ns }) => ns },
    { title: 'calls', tip: 'the number of calls', text: ({ ncall }) => count(ncall), sort: ({ ncall }) => ncall },
    { title: 'self time', tip: 'their time excluding inner spans', text: ({ tsub_ns: ns }) => duration(ns), sort: ({ tsub_ns: ns }) => ns },
    { title: 'share', tip: 'the self time as a share of the start-up: more than 100 % if spans ran in parallel', text: ({ tsub_ns: ns }) => share(ns, wall) },
    { title: 'total', tip: 'their time including inner spans', text: ({ ttot_ns: ns }) => duration(ns), sort: ({ ttot_ns: ns }) => ns },
  ];
  return wall > 0 && [element('p', {}, `The server was ready after ${duration(wall)}.`), spans.length > 0 && figure('What took longest until then', table(columns, spans))];
}

/** Returns the settings, with a column for each engine. */
function settings() {
  const names = [...new Set(data.settings.flatMap(({ values }) => Object.keys(values)))].sort();
  const columns = [
    { title: 'setting', tip: 'the name in the engine', class: 'text', text: (name) => element('code', {}, name) },
    ...data.settings.map(({ process, values }) => ({ title: processName(process), tip: 'the value in this engine', class: 'text', text: (name) => (values[name] == null ? '' : typeof values[name] === 'string' ? values[name] : JSON.stringify(values[name])) })),
  ];
  return names.length > 0 && figure('As the engines recorded them', table(columns, names));
}

function load() {
  const percent = (of) => (value) => (of === 'kv_used_percent' ? `${value.toFixed(1)} %` : value.toFixed(1));
  const columns = [
    { title: 'level', tip: 'values over time: for half of the time, the value was at most p50', class: 'text', text: ({ of, process }) => (process == null ? LEVELS[of] : `${LEVELS[of]}, ${processName(process)}`) },
    ...['mean', 'p50', 'p90', 'p99', 'max'].map((name) => ({ title: name, tip: name === 'mean' || name === 'max' ? undefined : `the value was at most this for ${name.slice(1)} % of the time`, text: (level) => percent(level.of)(level[name]) })),
  ];
  return data.load.length > 0 && figure('Levels over time', table(columns, data.load));
}

const METRICS = { engine_ttft: 'TTFT, engine', ttft: 'TTFT', tpot: 'TPOT', e2e: 'E2E' };
const REFUSED = {
  few_points: 'three points of 20 requests each are needed, at different numbers in flight',
  not_linear: 'the points are too far from a line (R² below 0.7)',
  not_rising: 'it does not grow with the number in flight',
};

/** Returns the table of how times grow with the requests in flight, with a line fitted to the points. */
function sizing() {
  const advice = ({ refused, target_ns: target, concurrency: many, is_beyond: isBeyond }) => {
    if (refused) return `no advice: ${REFUSED[refused]}`;
    if (target == null) return '';
    if (many === 0) return `even a single request exceeds ${duration(target)}`;
    return `stays within ${duration(target)} up to ${many}${isBeyond ? ', the highest point, and maybe beyond' : ''}`;
  };
  const pointText = (point) => `${point.concurrency.toFixed(1)}: ${duration(point.p95_ns)}`;
  const columns = [
    { title: 'p95 of', tip: '95 % of the requests took at most this', class: 'text', text: ({ of }) => METRICS[of] ?? words(of) },
    { title: 'by requests in flight', tip: 'pairs of the mean number of requests in flight and their p95', class: 'text', text: ({ points }) => points.map(pointText).join(', ') },
    { title: 'per extra request', tip: 'the time that one more request in flight adds: the slope of a line through the points', text: ({ fit }) => (fit ? duration(fit.slope_ns) : '') },
    { title: 'R²', tip: 'how well the line fits the points: 1 is best', text: ({ fit }) => (fit ? fit.r_squared.toFixed(2) : '') },
    { title: 'advice', tip: 'the number of requests in flight at which the objective of --slo is met', class: 'text', text: advice },
  ];
  return data.sizing.length > 0 && figure('Time against requests in flight', table(columns, data.sizing));
}

/** Creates a section. If that fails, the other sections are still shown. */
function attempt(body) {
  try {
    return body();
  } catch (error) {
    setTimeout(() => { throw error; }); // reports it on the console
    return element('p', { class: 'warning' }, `This cannot be shown: ${error.message}`);
  }
}

function leftOut() {
  const { left_out: n } = data.timeline;
  return n > 0 && element('p', { class: 'soft' }, `${count(n)} more series are left out.`);
}

/** Returns a grid of the named charts, without those that have no values. */
function chartGrid(charts, names, window) {
  const shown = names.map((name) => new Chart(name, window)).filter(({ isEmpty }) => !isEmpty);
  charts.push(...shown);
  return shown.length > 0 && element('div', { class: 'grid charts' }, shown.map((chart) => chart.element));
}

/** Returns the sections in order. Each has an id, a title, a function that creates its contents, and true if it is folded. */
function sections(window, charts) {
  const { request, timeline, device, worker } = data;
  const none = 'No event has a request_id: docs/time.md lists the events to record.';
  const list = request.id.length > 0 && new RequestList(window);
  const run = (timeline.series.length > 0 || data.run_phases.length > 0) && new RunTimeline(window);
  if (run) charts.push(run);
  // As in the figures, only answered requests have an E2E.
  const answered = () => request.e2e_us.filter((_, at) => request.status[at] === 'ok');
  const curves = () => element('div', { class: 'grid' }, distribution('E2E', answered(), 'soft'), distribution('TTFT', request.ttft_us, 'prefill'), distribution('TPOT', request.tpot_us, 'decode'));
  return [
    ['verdict', 'Verdict', verdict],
    ['run', 'The run', () => run && [run.element, leftOut()]],
    ['findings', 'Findings', () => findings(timeline.series.length > 0 && window)],
    ['requests', 'Requests', () => (list ? [element('div', { class: 'grid pair' }, element('div', {}, requestFigures()), requestParts()), curves()] : element('p', {}, none))],
    ['each', 'Each request', () => list && list.element],
    ['load', 'Load', () => chartGrid(charts, ['load', 'kv', 'tokens', 'steps'], window)],
    ['devices', device.length > 0 ? 'Devices' : 'Workers', () => device.length + worker.length > 0 && [deviceTable(), workerTable(), idleBars(), chartGrid(charts, ['busy'], window), rankMatrix()]],
    ['missing', 'What is missing', missing],
    ['recorded', 'What was recorded', recorded, true],
    ['start-up', 'Start-up', startUp, true],
    ['settings', 'Engine settings', settings, true],
    ['levels', 'Levels and sizing', () => [load(), sizing()], true],
    ['phases', 'Phases in the engine', phases, true],
    ['prefixes', 'Prefixes', prefixes, true],
    ['streams', 'Streams, host and ranks', () => [streamTable(), hostTable(), rankTable()], true],
    ['slowest', 'What took longest', () => [slowSteps(), longGaps()], true],
    ['stacks', 'Stacks', () => data.stacks.length > 0 && new Flame().element, true],
    ['names', 'Names', () => data.names.length > 0 && nameTable(), true],
  ];
}

/** Unfolds the section that the address names. */
function unfold() {
  const fold = document.getElementById(location.hash.slice(1))?.querySelector(':scope > details');
  if (fold) fold.open = true;
}

/** Draws the charts now, when the width or the colours of the page change, and for printing. */
function drawCharts(charts) {
  const draw = (width) => charts.forEach((chart) => chart.draw(width));
  let timer;
  draw();
  addEventListener('resize', () => {
    clearTimeout(timer);
    timer = setTimeout(draw, 100);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw());
  addEventListener('beforeprint', () => draw(PAPER));
  addEventListener('afterprint', () => draw());
}

function build() {
  const { from_ns: from, part_ns: part, series } = data.timeline;
  const n = series[0]?.values.length ?? 0;
  const window = new TimeWindow(from, n > 0 ? from + n * part : from + data.serving.wall_ns);
  const charts = [];
  document.getElementById('title').textContent = `${data.title} · sa-profile ${data.version}`;
  document.title = `${data.title}: where the time went`;
  for (const [id, title, body, isFolded] of sections(window, charts)) {
    const shown = [attempt(body)].flat(3).filter(Boolean);
    if (shown.length === 0) continue;
    const head = element('h2', {}, title);
    const section = isFolded ? element('details', {}, element('summary', {}, head), shown) : [head, shown];
    document.getElementById('contents').append(element('a', { href: `#${id}` }, title));
    document.getElementById('report').append(element('section', { id }, section));
  }
  showExplanations();
  drawCharts(charts);
  addEventListener('hashchange', unfold);
  unfold();
}

build();
