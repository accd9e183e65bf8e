// Times of names, and the longest steps and gaps.

function nameTable() {
  const wall = data.serving.wall_ns;
  const kinds = { thread: '', async: ' [async]', track: ' [track]', region: ' [region]' };
  const columns = [
    { title: 'name', tip: 'the name of the spans', class: 'text', text: (row) => row.name + kinds[row.row_kind], sort: (row) => row.name },
    { title: 'category', tip: 'the category of the spans', class: 'text', text: (row) => row.category, sort: (row) => row.category },
    { title: 'ncall', tip: 'the number of calls', text: (row) => count(row.ncall), sort: (row) => row.ncall },
    { title: 'tsub', tip: 'time excluding inner spans', text: (row) => duration(row.tsub_ns), sort: (row) => row.tsub_ns },
    { title: 'share', tip: 'tsub as a share of the serving time: more than 100 % if spans ran in parallel', text: (row) => share(row.tsub_ns, wall) },
    ...(data.names.some((row) => row.tsub_cpu_ns != null) ? [{ title: 'on CPU', tip: 'tsub in CPU time of the thread', text: (row) => duration(row.tsub_cpu_ns), sort: (row) => row.tsub_cpu_ns }] : []),
    { title: 'ttot', tip: 'time including inner spans', text: (row) => duration(row.ttot_ns), sort: (row) => row.ttot_ns },
    { title: 'tavg', tip: 'the mean ttot per call', text: (row) => duration(row.tavg_ns), sort: (row) => row.tavg_ns },
    ...['p50', 'p99', 'max'].map((name) => ({ title: name, tip: `${name} of the durations of its spans`, text: (row) => duration(row.duration[`${name}_ns`]), sort: (row) => row.duration[`${name}_ns`] })),
  ];
  const place = element('div');
  const draw = (part) => place.replaceChildren(table(columns, data.names.filter(({ name }) => name.includes(part)), { sorted: 3, most: 40 }));
  draw('');
  const filter = element('input', { type: 'search', placeholder: 'name contains …', 'aria-label': 'Part of a name', oninput: (event) => draw(event.target.value) });
  const more = data.names_of > data.names.length ? ` This page contains the ${count(data.names.length)} names with the most time, of ${count(data.names_of)}.` : '';
  return figure('Time of each name', [element('div', { class: 'controls' }, filter, element('small', {}, `At most 40 are shown.${more}`)), place], 'names');
}

function slowSteps() {
  if (data.slow_steps.length === 0) return undefined;
  const columns = [
    { title: 'step', tip: 'the process, and the span of the step', class: 'text', text: (row) => `${processName(row.process)}: ${row.name}` },
    { title: 'at', text: (row) => duration(row.start_ns) },
    { title: 'took', text: (row) => duration(row.dur_ns) },
    { title: 'most time in', tip: 'the spans in it with the most self time', class: 'text', text: (row) => row.inside.slice(0, 3).map(({ name, tsub_ns: ns }) => `${name} ${duration(ns)}`).join(', ') },
    { title: 'in Perfetto', tip: 'the command that shows it', class: 'text', text: (row) => opens(row.start_ns, row.dur_ns) ?? '' },
  ];
  return figure('Longest steps', table(columns, data.slow_steps), 'steps');
}

function longGaps() {
  if (data.long_gaps.length === 0) return undefined;
  const columns = [
    { title: 'gap', tip: 'the device on which nothing ran', class: 'text', text: (row) => processName(row.process) },
    { title: 'at', text: (row) => duration(row.start_ns) },
    { title: 'took', text: (row) => duration(row.dur_ns) },
    { title: 'main cause', tip: 'the cause of most of the gap', class: 'text', text: (row) => `${data.causes[row.cause][0]} (${duration(row.cause_ns)})` },
    { title: 'in Perfetto', tip: 'the command that shows it', class: 'text', text: (row) => opens(row.start_ns, row.dur_ns) ?? '' },
  ];
  return figure('Longest gaps', table(columns, data.long_gaps), 'gaps');
}
