// The devices: how busy they were, why they were idle, and which workers they waited for.

const LAUNCHES = [
  { title: 'launch delay', tip: 'the median time from the launch of a slice to its start', text: (device) => duration(device.launch_delay.p50_ns), sort: (device) => device.launch_delay.p50_ns },
  { title: 'short', tip: 'the share of slices that took less time than the host needed to launch them', text: (device) => share(device.short_slices, device.slices), sort: (device) => device.short_slices },
];

function deviceTable() {
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'slices', text: ({ slices }) => count(slices), sort: ({ slices }) => slices },
    { title: 'busy', text: (row) => share(row.busy_ns, row.wall_ns), sort: (row) => row.busy_ns / (row.wall_ns || 1) },
    { title: 'communication', tip: 'the share of the time in which collectives ran', text: (row) => share(row.communication_ns, row.wall_ns), sort: (row) => row.communication_ns },
    { title: 'exposed', tip: 'communication while nothing else ran', text: (row) => share(row.exposed_communication_ns, row.wall_ns), sort: (row) => row.exposed_communication_ns },
    { title: 'longest gap', text: (row) => duration(row.longest_gap_ns), sort: (row) => row.longest_gap_ns },
    { title: 'starting at', tip: 'the start of the longest gap, from the start of the trace', text: (row) => duration(row.longest_gap_at_ns) },
    ...(data.device.some((row) => row.launch_delay.n > 0) ? LAUNCHES : []),
  ];
  return data.device.length > 0 && figure('How busy they were', table(columns, data.device), 'devices');
}

/** Returns the table of workers whose device is not recorded. */
function workerTable() {
  const columns = [
    { title: 'worker', tip: 'a worker process', class: 'text', text: ({ process }) => processName(process) },
    { title: 'steps', tip: 'steps of the worker', text: ({ slices }) => count(slices), sort: ({ slices }) => slices },
    { title: 'in steps', tip: 'the share of its time in a step or in sampling', text: (row) => share(row.busy_ns, row.wall_ns), sort: (row) => row.busy_ns / (row.wall_ns || 1) },
    { title: 'longest gap', text: (row) => duration(row.longest_gap_ns), sort: (row) => row.longest_gap_ns },
    { title: 'starting at', tip: 'the start of the longest gap, from the start of the trace', text: (row) => duration(row.longest_gap_at_ns) },
  ];
  return data.worker.length > 0 && figure('Workers whose device is not recorded', table(columns, data.worker));
}

/** Returns the table of streams, if a device has several, or if a stream has figures that its device lacks. */
function streamTable() {
  const hasFigures = ({ mean_queue: mean, replays }) => mean !== null || replays > 0;
  if (data.stream.length <= data.device.length && !data.stream.some(hasFigures)) return undefined;
  const wall = new Map(data.device.map(({ process, wall_ns: ns }) => [process, ns]));
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'stream', tip: 'the track of the device', class: 'text', text: ({ name }) => name },
    { title: 'slices', text: ({ slices }) => count(slices), sort: ({ slices }) => slices },
    { title: 'busy', text: (row) => share(row.busy_ns, wall.get(row.process)), sort: (row) => row.busy_ns / (wall.get(row.process) || 1) },
    { title: 'replays', tip: 'replays of graphs', text: ({ replays }) => count(replays), sort: ({ replays }) => replays },
    { title: 'queue', tip: 'the mean number of recorded slices that were launched but had not started', text: ({ mean_queue: mean }) => mean?.toFixed(1) ?? '', sort: ({ mean_queue: mean }) => mean },
    { title: 'longest', tip: 'the maximum number of such slices', text: ({ max_queue: max }) => (max === null ? '' : count(max)), sort: ({ max_queue: max }) => max },
  ];
  return figure('Their streams', table(columns, data.stream));
}

/** Returns a table with a bar of causes for each device. Its length is the idle time. */
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
    ...order.slice(0, 3).map((cause) => ({ title: name(cause), tip: data.causes[cause][1], text: (row) => duration(causeNs(row, cause)), sort: (row) => causeNs(row, cause) })),
    { title: 'causes', tip: 'all causes; the longest bar belongs to the device that was idle for longest', class: 'wide', text: ({ causes }) => bar(order.map((cause) => ({ name: name(cause), ns: causes.find((one) => one.cause === cause)?.ns ?? 0, colours: colour.get(cause) })), whole) },
  ];
  const entries = order.map((cause) => ({ name: `${name(cause)} (${share(totals.get(cause), all)})`, meaning: data.causes[cause][1], colours: colour.get(cause) }));
  return figure('Why they were idle', [table(columns, idle), legend(entries)], 'idle');
}

function causeNs({ causes }, wanted) {
  return causes.find(({ cause }) => cause === wanted)?.ns ?? 0;
}

/** Returns the matrix of times that each device waited for each worker. */
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
    ...workers.map((worker) => ({ title: `for ${processName(worker)}`, tip: 'the time that the device waited while this worker was still in its step', text: (row) => cell(row, worker), sort: (row) => row.waited_for.find(({ process }) => process === worker)?.ns })),
  ];
  return figure('Which workers they waited for', element('div', { class: 'matrix' }, table(columns, waits)));
}

function rankTable() {
  if (data.rank.length === 0) return undefined;
  const columns = [
    { title: 'device', class: 'text', text: ({ process }) => processName(process) },
    { title: 'collectives', tip: 'collectives that several devices took part in', text: (row) => count(row.collectives) },
    { title: 'last in', tip: 'the share of its collectives that it started last', text: (row) => share(row.last, row.collectives), sort: (row) => row.last / row.collectives },
    { title: 'outlier in', tip: 'by Dixon’s test at 99 %, or by three standard deviations for more than ten devices', text: (row) => share(row.outlier, row.collectives), sort: (row) => row.outlier / row.collectives },
    { title: 'late by', tip: 'the delay that it alone caused: how much earlier its collectives would have started without it', text: (row) => duration(row.late_ns), sort: (row) => row.late_ns },
    { title: 'waited', tip: 'the time that it waited for others in collectives', text: (row) => duration(row.waited_ns), sort: (row) => row.waited_ns },
  ];
  return figure('Which device was last in collectives', table(columns, data.rank));
}

const [EXPOSED, HIDDEN] = [['var(--host)'], ['var(--device)']];

/** Returns the table of the host’s activities, as means per device. */
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
    { title: 'host', tip: 'the activity of the host', class: 'text', text: ({ activity }) => words(activity) },
    { title: 'calls', tip: 'the mean per device', text: ({ calls }) => count(calls / n) },
    { title: 'total', tip: 'the mean per device', text: ({ total }) => duration(total / n), sort: ({ total }) => total },
    { title: 'exposed', tip: 'while the device was idle', text: ({ exposed }) => duration(exposed / n), sort: ({ exposed }) => exposed },
    { title: 'parts', tip: 'exposed and hidden time', class: 'wide', text: ({ total, exposed }) => bar([{ name: 'exposed', ns: exposed, colours: EXPOSED }, { name: 'hidden', ns: total - exposed, colours: HIDDEN }], whole) },
  ];
  return figure('What the host did meanwhile, per device', [table(columns, [...sums.values()]), legend([{ name: 'exposed: the device was idle', colours: EXPOSED }, { name: 'hidden: the device was busy', colours: HIDDEN }])]);
}
