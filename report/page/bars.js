// Bars of parts.

const COLOURS = 12;

function colour(nth) {
  return `c${nth % COLOURS}`;
}

/** A bar as long as its parts of `whole` together. A part is a `name`, `ns` and the number of its colour. */
function bar(parts, whole, thin) {
  const picture = drawn('svg', { class: thin ? 'bar thin' : 'bar', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img' });
  let at = 0;
  for (const { name, ns, nth } of parts) {
    const width = whole > 0 ? (1000 * ns) / whole : 0;
    if (width > 0) picture.append(drawn('rect', { x: at, y: 0, width, height: 10, class: colour(nth) }, tip(`${name}: ${duration(ns)}`)));
    at += width;
  }
  picture.setAttribute('aria-label', parts.map(({ name, ns }) => `${name} ${duration(ns)}`).join(', '));
  return picture;
}

/** What the colours stand for. */
function legend(entries) {
  return element('div', { class: 'legend' }, entries.map(({ name, nth, meaning }) =>
    element('span', { title: meaning }, element('i', { class: colour(nth) }), meaning ? `${name}: ${meaning}` : name)));
}
