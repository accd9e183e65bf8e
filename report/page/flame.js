// A flame graph of a process, growing downwards. The width of a stack is its time.

const LINE = 20; // height of a frame, in px
const NARROWEST = 0.0008; // minimum width of a frame, as a share of the graph
const DEEPEST = 100; // maximum depth; zooming shows deeper frames

class Flame {
  #root;
  #focused = 0;
  #body = element('div', { class: 'flame', role: 'tree', 'aria-label': 'Stacks: arrows move, Enter zooms, Escape shows all', onkeydown: (event) => this.#key(event) });
  #status = element('span', { 'aria-live': 'polite' });
  #frames = [];

  constructor() {
    this.roots = this.#trees().sort((a, b) => b.ns - a.ns);
    this.#root = this.roots[0];
    const choose = element('select', { 'aria-label': 'Process', onchange: (event) => this.#zoom(this.roots[event.target.value]) }, this.roots.map((root, nth) => element('option', { value: nth }, `${root.name} (${duration(root.ns)})`)));
    const back = element('button', { type: 'button', onclick: () => this.#zoom(this.#top(this.#root)) }, 'whole process');
    this.element = element('div', { id: 'flame' }, element('div', { class: 'controls' }, choose, back, this.#status), this.#body);
    if (this.#root) this.#draw();
  }

  /** Returns a tree for each process: its name, with the outermost stacks as children. */
  #trees() {
    const roots = new Map();
    const made = [];
    for (const stack of data.stacks) {
      if (!roots.has(stack.process)) roots.set(stack.process, { name: processName(stack.process), ns: 0, selfNs: 0, ncall: 0, inside: [], parent: undefined });
      const parent = stack.parent == null ? roots.get(stack.process) : made[stack.parent];
      const node = { name: stack.name, ns: stack.subtree_ns, selfNs: stack.self_ns, ncall: stack.ncall, inside: [], parent };
      made.push(node);
      parent.inside.push(node);
      if (stack.parent == null) parent.ns += node.ns;
    }
    return [...roots.values()];
  }

  #top(node) {
    while (node.parent) node = node.parent;
    return node;
  }

  #zoom(node) {
    this.#root = node;
    this.#focused = 0;
    this.#draw();
  }

  #draw() {
    this.#frames = [];
    const add = (node, left, width, depth) => {
      if (width < NARROWEST || depth > DEEPEST) return;
      this.#frames.push({ node, left, width, depth });
      let at = left;
      for (const child of node.inside.toSorted((a, b) => b.ns - a.ns)) {
        const wide = (width * child.ns) / (node.ns || 1);
        add(child, at, wide, depth + 1);
        at += wide;
      }
    };
    add(this.#root, 0, 1, 0);
    const deepest = this.#frames.reduce((most, { depth }) => Math.max(most, depth), 0);
    this.#body.style.height = `${(deepest + 1) * LINE}px`;
    this.#body.replaceChildren(...this.#frames.map((frame, nth) => this.#frame(frame, nth)));
    this.#status.textContent = this.#root.parent ? `in ${this.#root.name}` : '';
  }

  #frame({ node, left, width, depth }, nth) {
    const text = `${node.name}: ${duration(node.ns)}, self time ${duration(node.selfNs)}, ${counted(node.ncall, 'call', 'calls')}, ${share(node.ns, this.#top(node).ns)}`;
    const hue = depth === 0 ? 0 : [...node.name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 8191, 7) % 8;
    return element('div', {
      class: `frame c${hue}`, role: 'treeitem', 'aria-label': text, title: text, tabindex: nth === this.#focused ? 0 : -1,
      style: `left:${100 * left}%;width:${100 * width}%;top:${depth * LINE}px`,
      onclick: () => this.#zoom(nth === 0 && node.parent ? node.parent : node), onfocus: () => this.#focus(nth),
    }, width > 0.02 ? node.name : '');
  }

  #focus(nth) {
    this.#body.children[this.#focused]?.setAttribute('tabindex', -1);
    this.#focused = nth;
    this.#body.children[nth].setAttribute('tabindex', 0);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser’s own shortcuts
    const { node } = this.#frames[this.#focused];
    const neighbour = (step) => {
      const level = this.#frames.filter(({ depth }) => depth === this.#frames[this.#focused].depth);
      return level[level.findIndex((frame) => frame.node === node) + step]?.node;
    };
    const to = { ArrowDown: () => node.inside.toSorted((a, b) => b.ns - a.ns)[0], ArrowUp: () => node.parent, ArrowLeft: () => neighbour(-1), ArrowRight: () => neighbour(1) }[event.key];
    if (event.key === 'Enter') this.#zoom(node);
    else if (event.key === 'Escape') this.#zoom(this.#top(node));
    else if (!to) return;
    event.preventDefault();
    const nth = to ? this.#frames.findIndex((frame) => frame.node === to()) : 0;
    if (nth >= 0) this.#body.children[nth].focus();
  }
}
