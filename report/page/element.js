// Elements of the page. Every text of a trace goes in as text, never as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/** An element with attributes, handlers (`onclick`) and children: elements, texts, or nothing. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in an SVG picture. */
function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made[name] = value;
    else if (value != null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return made;
}

/** What is shown in a tooltip. */
function tip(text) {
  return drawn('title', {}, text);
}

/** A figure with a title; its SQL unfolds. */
function figure(title, body, sql) {
  return element('figure', {}, element('figcaption', {}, title), body, sql && statement(sql));
}

/** A statement that unfolds. */
function statement(name) {
  const text = data.sql[name];
  return text && element('details', { class: 'sql' }, element('summary', {}, `SQL: sa-profile sql RUN ${name}`), element('pre', {}, text));
}

/** A table. A column has a `title`, `text` of a row, `sort` (what a click on its title sorts by) and a `class`. */
function table(columns, rows, { sorted, down = true, most = Infinity } = {}) {
  const body = element('tbody');
  const head = element('tr');
  const draw = () => {
    const by = columns[sorted]?.sort;
    const order = by ? rows.toSorted((a, b) => compared(by(a), by(b)) * (down ? -1 : 1)) : rows;
    const cell = (column, row) => element('td', { class: column.class }, column.text(row));
    body.replaceChildren(...order.slice(0, most).map((row) => element('tr', {}, columns.map((column) => cell(column, row)))));
    columns.forEach((column, nth) => {
      if (nth === sorted) head.children[nth].setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else head.children[nth].removeAttribute('aria-sort');
    });
  };
  const sortBy = (nth) => {
    [sorted, down] = [nth, nth === sorted ? !down : true];
    draw();
  };
  columns.forEach((column, nth) => {
    const title = column.sort ? element('button', { type: 'button', onclick: () => sortBy(nth) }, column.title) : column.title;
    head.append(element('th', { class: column.class, scope: 'col', title: column.tip }, title));
  });
  draw();
  return element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, head), body));
}

/** Orders numbers and texts; what is not known is the least. */
function compared(a, b) {
  if (a == null || b == null) return (a != null) - (b != null);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The name of a process. */
function processName(number) {
  const process = data.recorded.processes[number];
  return process?.device_name ?? process?.name ?? `process ${process?.pid ?? number}`;
}

/** The command that opens Perfetto at a time; nothing where none would. Perfetto takes no time that is not within the trace. */
function opens(startNs, durNs) {
  if (data.opens == null) return '';
  const [first, last] = [data.timeline.from_ns, data.timeline.from_ns + data.recorded.wall_ns];
  const margin = Math.max(durNs / 20, 1e5);
  const from = 1e3 * Math.ceil(Math.max(startNs - margin, first) / 1e3);
  const to = Math.min(startNs + durNs + margin, last);
  return element('code', {}, `sa-profile open ${data.opens} --at ${option(from)} --for ${option(to - from)}`);
}
