// The time of each name, and the longest steps and gaps.

function nameTable() {
  const wall = data.serving.wall_ns;
  const kinds = { thread: '', async: ' [async]', track: ' [track]', region: ' [region]' };
  const columns = [
    { title: 'name', tip: 'the name of the spans', class: 'text', text: (of) => of.name + kinds[of.row_kind], sort: (of) => of.name },
    { title: 'category', tip: 'the category of the spans', class: 'text', text: (of) => of.category, sort: (of) => of.category },
    { title: 'ncall', tip: 'the number of calls', text: (of) => count(of.ncall), sort: (of) => of.ncall },
    { title: 'tsub', tip: 'time excluding inner spans', text: (of) => duration(of.tsub_ns), sort: (of) => of.tsub_ns },
    { title: 'share', tip: 'tsub as a share of the serving time', text: (of) => share(of.tsub_ns, wall) },
    ...(data.names.some((of) => of.tsub_cpu_ns != null) ? [{ title: 'on CPU', tip: 'tsub on the clock of the thread’s CPU time', text: (of) => duration(of.tsub_cpu_ns), sort: (of) => of.tsub_cpu_ns }] : []),
    { title: 'ttot', tip: 'time including inner spans', text: (of) => duration(of.ttot_ns), sort: (of) => of.ttot_ns },
    { title: 'tavg', tip: 'ttot of one call: the mean', text: (of) => duration(of.tavg_ns), sort: (of) => of.tavg_ns },
    ...['p50', 'p99', 'max'].map((name) => ({ title: name, tip: `${name} of the durations of its spans`, text: (of) => duration(of.duration[`${name}_ns`]), sort: (of) => of.duration[`${name}_ns`] })),
  ];
  const place = element('div');
  const draw = (part) => place.replaceChildren(table(columns, data.names.filter(({ name }) => name.includes(part)), { sorted: 3, most: 40 }));
  draw('');
  const filter = element('input', { type: 'search', placeholder: 'name has …', 'aria-label': 'Part of a name', oninput: (event) => draw(event.target.value) });
  const more = data.names_of > data.names.length ? ` This page has the ${count(data.names.length)} with the most time of ${count(data.names_of)}.` : '';
  return figure('Time of each name', [element('div', { class: 'controls' }, filter, element('small', {}, `At most 40 are shown.${more}`)), place], 'names');
}

function slowSteps() {
  if (data.slow_steps.length === 0) return undefined;
  const columns = [
    { title: 'step', tip: 'the process and the span of the step', class: 'text', text: (of) => `${processName(of.process)}: ${of.name}` },
    { title: 'at', text: (of) => duration(of.start_ns) },
    { title: 'took', text: (of) => duration(of.dur_ns) },
    { title: 'most time in', tip: 'the spans in it with the most self time', class: 'text', text: (of) => of.inside.slice(0, 3).map(({ name, tsub_ns: ns }) => `${name} ${duration(ns)}`).join(', ') },
    { title: 'in Perfetto', tip: 'the command that shows it', class: 'text', text: (of) => opens(of.start_ns, of.dur_ns) ?? '' },
  ];
  return figure('Longest steps', table(columns, data.slow_steps), 'steps');
}

function longGaps() {
  if (data.long_gaps.length === 0) return undefined;
  const columns = [
    { title: 'gap', tip: 'the device on which nothing ran', class: 'text', text: (of) => processName(of.process) },
    { title: 'at', text: (of) => duration(of.start_ns) },
    { title: 'took', text: (of) => duration(of.dur_ns) },
    { title: 'waited most for', tip: 'the cause of most of the gap', class: 'text', text: (of) => `${data.causes[of.cause][0]} (${duration(of.cause_ns)})` },
    { title: 'in Perfetto', tip: 'the command that shows it', class: 'text', text: (of) => opens(of.start_ns, of.dur_ns) ?? '' },
  ];
  return figure('Longest gaps', table(columns, data.long_gaps), 'gaps');
}
