// Elements of the page. Every text of a trace is inserted as text, never as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element with attributes, handlers (such as `onclick`) and children: elements, texts, or nothing. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Creates an SVG element in the same way. */
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

/** Returns the title of a part of a picture, which browsers show as a tooltip. */
function tip(text) {
  return drawn('title', {}, text);
}

/** Adds an explanation to an element, which is shown when the pointer is over it or when it has the focus. */
function explained(made, text) {
  made.dataset.tip = text;
  made.setAttribute('aria-description', text);
  return made;
}

/** Shows the explanation of the element under the pointer or with the focus, in one box for all of them. */
function showExplanations() {
  const box = element('div', { id: 'tip', role: 'tooltip', hidden: true });
  const hide = () => { box.hidden = true; };
  const show = ({ target }) => {
    const tipped = target.closest?.('[data-tip]');
    box.hidden = !tipped;
    if (!tipped) return;
    box.textContent = tipped.dataset.tip;
    const at = tipped.getBoundingClientRect();
    const below = at.bottom + 6 + box.offsetHeight <= innerHeight;
    box.style.top = `${below ? at.bottom + 6 : at.top - 6 - box.offsetHeight}px`;
    box.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  };
  document.body.append(box);
  for (const event of ['pointerover', 'focusin']) document.addEventListener(event, show);
  for (const event of ['focusout', 'scroll']) document.addEventListener(event, hide, true);
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && hide());
}

/** Returns a figure with a title. If it has SQL, a button shows it. */
function figure(title, body, sql) {
  const text = sql && data.sql[sql];
  if (!text) return element('figure', {}, element('figcaption', {}, title), body);
  const shown = element('div', { class: 'statement', hidden: true }, command(`sa-profile sql ${data.opens ?? 'RUN'} ${sql}`), element('pre', {}, text));
  const button = element('button', { type: 'button', class: 'sql', 'aria-expanded': 'false', onclick: () => {
    shown.hidden = !shown.hidden;
    button.setAttribute('aria-expanded', String(!shown.hidden));
  } }, 'SQL');
  button.setAttribute('aria-label', `SQL of “${title}”`);
  return element('figure', {}, element('figcaption', {}, title, button), shown, body);
}

/** Returns a command with a button that copies it. */
function command(text) {
  // Lines must break between words only, not inside `--for`.
  const code = element('code', {}, text.split(/(?<= )/).map((word) => element('span', {}, word)));
  const button = element('button', { type: 'button', 'aria-label': `Copy ${text}`, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page without access to the clipboard can still copy the selection
      getSelection().selectAllChildren(code);
      document.execCommand('copy');
    }
    button.textContent = 'copied';
    setTimeout(() => { button.textContent = 'copy'; }, 1500);
  } }, 'copy');
  return element('span', { class: 'command' }, code, button);
}

/** Explanations of columns that several tables have. */
const COLUMNS = {
  n: 'the number of values in the figures of this row',
  mean: 'the mean of all values',
  p50: 'the median: half of the values are at most this',
  p90: '90 % of the values are at most this',
  p99: '99 % of the values are at most this',
  max: 'the largest value',
  share: 'the share of all',
  at: 'its start, from the start of the trace',
  took: 'the time from its start to its end',
  device: 'the device, or the worker whose device is not recorded',
  slices: 'kernels, copies and collectives that ran',
  busy: 'the share of the time in which anything ran',
  'longest gap': 'the longest time in which nothing ran',
};

/** Returns the style of a label at a position in its box, in percent. The label is centred there unless it would leave the box. */
function anchored(percent) {
  const shift = percent < 8 ? 0 : percent > 92 ? 100 : 50;
  return `left:${percent}%;transform:translateX(-${shift}%)`;
}

/** Returns a table. Each column has a `title`, a `tip` that explains it, a `text` for each row, a `sort` key that a click on the title sorts by, and a `class`. */
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
    head.append(columnHead(column, column.sort && (() => sortBy(nth))));
  });
  draw();
  return element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, head), body));
}

/** Returns the head of a column, with its explanation. A click on it calls `onclick`, if that is set. */
function columnHead({ title, tip: meaning = COLUMNS[title], class: kind }, onclick) {
  const head = element('th', { class: kind, scope: 'col' });
  if (title === '') return head;
  const name = onclick ? element('button', { type: 'button', onclick }, title) : element('span', { tabindex: meaning ? 0 : undefined }, title);
  head.append(meaning ? explained(name, meaning) : name);
  return head;
}

/** Compares two numbers or texts. Unknown values come before all others. */
function compared(a, b) {
  if (a == null || b == null) return (a != null) - (b != null);
  return a < b ? -1 : a > b ? 1 : 0;
}
