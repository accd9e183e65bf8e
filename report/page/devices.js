// The devices: how busy they were, why they were idle, and who waited for whom.

const LAUNCHES = [
  { title: 'launch delay', tip: 'from launch to begin: half of the slices had at most this', text: (of) => duration(of.launch_delay.p50_ns), sort: (of) => of.launch_delay.p50_ns },
  { title: 'short', tip: 'slices that took less time than their launch took the host', text: (of) => share(of.short_slices, of.slices), sort: (of) => of.short_slices },
];

function deviceTable() {
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'slices', text: ({ slices }) => count(slices), sort: ({ slices }) => slices },
    { title: 'busy', text: (of) => share(of.busy_ns, of.wall_ns), sort: (of) => of.busy_ns / (of.wall_ns || 1) },
    { title: 'communication', tip: 'the share of the time in which collectives ran', text: (of) => share(of.communication_ns, of.wall_ns), sort: (of) => of.communication_ns },
    { title: 'exposed', tip: 'communication while nothing else ran', text: (of) => share(of.exposed_communication_ns, of.wall_ns), sort: (of) => of.exposed_communication_ns },
    { title: 'longest gap', text: (of) => duration(of.longest_gap_ns), sort: (of) => of.longest_gap_ns },
    { title: 'which began at', tip: 'when the longest gap began, from the start of the trace', text: (of) => duration(of.longest_gap_at_ns) },
    ...(data.device.some((of) => of.launch_delay.n > 0) ? LAUNCHES : []),
  ];
  return data.device.length > 0 && figure('How busy they were', table(columns, data.device), 'devices');
}

/** The workers whose device is not recorded. */
function workerTable() {
  const columns = [
    { title: 'worker', tip: 'a worker process', class: 'text', text: ({ process }) => processName(process) },
    { title: 'steps', tip: 'steps of the worker', text: ({ slices }) => count(slices), sort: ({ slices }) => slices },
    { title: 'in them', tip: 'the share of its time that it was in a step, or sampled', text: (of) => share(of.busy_ns, of.wall_ns), sort: (of) => of.busy_ns / (of.wall_ns || 1) },
    { title: 'longest gap', text: (of) => duration(of.longest_gap_ns), sort: (of) => of.longest_gap_ns },
    { title: 'which began at', tip: 'when the longest gap began, from the start of the trace', text: (of) => duration(of.longest_gap_at_ns) },
  ];
  return data.worker.length > 0 && figure('Workers whose device is not recorded', table(columns, data.worker));
}

/** The streams, where they tell more than their devices. */
function streamTable() {
  const tells = ({ mean_queue: mean, replays }) => mean !== null || replays > 0;
  if (data.stream.length <= data.device.length && !data.stream.some(tells)) return undefined;
  const wall = new Map(data.device.map(({ process, wall_ns: ns }) => [process, ns]));
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'stream', tip: 'the row of the device', class: 'text', text: ({ name }) => name },
    { title: 'slices', text: ({ slices }) => count(slices), sort: ({ slices }) => slices },
    { title: 'busy', text: (of) => share(of.busy_ns, wall.get(of.process)), sort: (of) => of.busy_ns / (wall.get(of.process) || 1) },
    { title: 'replays', tip: 'graphs that were replayed', text: ({ replays }) => count(replays), sort: ({ replays }) => replays },
    { title: 'queue', tip: 'slices launched that have not begun, the mean over time', text: ({ mean_queue: mean }) => mean?.toFixed(1) ?? '', sort: ({ mean_queue: mean }) => mean },
    { title: 'longest', tip: 'the most that a launch found', text: ({ max_queue: max }) => (max === null ? '' : count(max)), sort: ({ max_queue: max }) => max },
  ];
  return figure('Their streams', table(columns, data.stream));
}

/** A bar of causes for each device, as long as its idle time. */
function idleBars() {
  const idle = data.idle.filter(({ idle_ns: ns }) => ns > 0);
  if (idle.length === 0) return undefined;
  const totals = new Map();
  for (const { causes } of idle) for (const { cause, ns } of causes) totals.set(cause, (totals.get(cause) ?? 0) + ns);
  const order = [...totals.keys()].sort((a, b) => totals.get(b) - totals.get(a));
  const whole = idle.reduce((most, { idle_ns: ns }) => Math.max(most, ns), 0);
  const name = (cause) => data.causes[cause][0];
  const all = [...totals.values()].reduce((sum, ns) => sum + ns, 0);
  const colour = colours(order, causePhases);
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'idle', tip: 'the time in which nothing ran, from its first slice to its last', text: ({ idle_ns: ns }) => duration(ns), sort: ({ idle_ns: ns }) => ns },
    ...order.slice(0, 3).map((cause) => ({ title: name(cause), tip: data.causes[cause][1], text: (of) => duration(causeNs(of, cause)), sort: (of) => causeNs(of, cause) })),
    { title: 'causes', tip: 'all causes; the longest bar is the device that was idle longest', class: 'wide', text: ({ causes }) => bar(order.map((cause) => ({ name: name(cause), ns: causes.find((one) => one.cause === cause)?.ns ?? 0, colours: colour.get(cause) })), whole) },
  ];
  const entries = order.map((cause) => ({ name: `${name(cause)} (${share(totals.get(cause), all)})`, meaning: data.causes[cause][1], colours: colour.get(cause) }));
  return figure('Why they were idle', [table(columns, idle), legend(entries)], 'idle');
}

function causeNs({ causes }, wanted) {
  return causes.find(({ cause }) => cause === wanted)?.ns ?? 0;
}

/** How long each device waited for each worker. */
function rankMatrix() {
  const waits = data.idle.filter(({ waited_for: of }) => of.length > 0);
  if (waits.length === 0) return undefined;
  const workers = [...new Set(waits.flatMap(({ waited_for: of }) => of.map(({ process }) => process)))].sort((a, b) => a - b);
  const most = waits.flatMap(({ waited_for: of }) => of).reduce((longest, { ns }) => Math.max(longest, ns), 0);
  const cell = ({ waited_for: of }, worker) => {
    const ns = of.find(({ process }) => process === worker)?.ns;
    const strength = Math.round((70 * (ns ?? 0)) / most);
    return element('span', { style: `display:block;padding:0 6px;background:color-mix(in srgb, var(--idle) ${strength}%, transparent)` }, duration(ns));
  };
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    ...workers.map((worker) => ({ title: `for ${processName(worker)}`, tip: 'how long the device waited while this worker was still in its step', text: (of) => cell(of, worker), sort: (of) => of.waited_for.find(({ process }) => process === worker)?.ns })),
  ];
  return figure('Whom they waited for', element('div', { class: 'matrix' }, table(columns, waits)));
}

function rankTable() {
  if (data.rank.length === 0) return undefined;
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'collectives', tip: 'collectives that several devices took part in', text: (of) => count(of.collectives) },
    { title: 'came last to', tip: 'the share of its collectives to which it came last', text: (of) => share(of.last, of.collectives), sort: (of) => of.last / of.collectives },
    { title: 'outlier in', tip: 'Dixon’s test at 99 %, or three standard deviations of more than ten devices', text: (of) => share(of.outlier, of.collectives), sort: (of) => of.outlier / of.collectives },
    { title: 'alone late by', tip: 'how much earlier its collectives would have begun if it had not been the last', text: (of) => duration(of.late_ns), sort: (of) => of.late_ns },
    { title: 'waited', tip: 'how long it waited in collectives for others', text: (of) => duration(of.waited_ns), sort: (of) => of.waited_ns },
  ];
  return figure('Who came last to collectives', table(columns, data.rank));
}

const [EXPOSED, HIDDEN] = [['var(--host)'], ['var(--device)']];

/** What the host did, against the mean device. */
function hostTable() {
  const sums = new Map();
  for (const { activity, calls, total_ns: total, exposed_ns: exposed } of data.idle.flatMap(({ host }) => host)) {
    const sum = sums.get(activity) ?? { activity, calls: 0, total: 0, exposed: 0 };
    sums.set(activity, { activity, calls: sum.calls + calls, total: sum.total + total, exposed: sum.exposed + exposed });
  }
  if (sums.size === 0) return undefined;
  const n = data.idle.length;
  const whole = Math.max(...[...sums.values()].map(({ total }) => total));
  const columns = [
    { title: 'host', tip: 'what the host did', class: 'text', text: ({ activity }) => words(activity) },
    { title: 'calls', tip: 'for the mean device', text: ({ calls }) => count(calls / n) },
    { title: 'total', tip: 'for the mean device', text: ({ total }) => duration(total / n), sort: ({ total }) => total },
    { title: 'exposed', tip: 'while the device was idle', text: ({ exposed }) => duration(exposed / n), sort: ({ exposed }) => exposed },
    { title: 'of it', tip: 'exposed and hidden time', class: 'wide', text: ({ total, exposed }) => bar([{ name: 'exposed', ns: exposed, colours: EXPOSED }, { name: 'hidden', ns: total - exposed, colours: HIDDEN }], whole) },
  ];
  return figure('What the host did meanwhile, for the mean device', [table(columns, [...sums.values()]), legend([{ name: 'exposed: the device was idle', colours: EXPOSED }, { name: 'hidden: it worked', colours: HIDDEN }])]);
}
