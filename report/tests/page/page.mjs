// Opens a page of a report and uses it at several widths: sorts, filters, selects times, unfolds, and uses dark mode and printing. Started by the script `page`.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Chromium } from '../../../tests/perfetto/chromium.mjs';
import { withFewColours } from './png.mjs';

const LIMIT_MS = 60_000;
const WIDTHS = [360, 800, 1400];
const WIDEST = 2560;

const size = (width) => ({ width, height: 900, deviceScaleFactor: 1 });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Uses the page in every way, and returns what it shows. */
async function use(page, file, pictures) {
  await page.before(() => {
    self.problems = [];
    addEventListener('error', ({ message }) => self.problems.push(message));
    addEventListener('securitypolicyviolation', ({ violatedDirective }) => self.problems.push(violatedDirective));
  });
  await page.resize(size(WIDTHS.at(-1)));
  await page.open(pathToFileURL(path.resolve(file)).href);
  await complete(page);
  const seen = {};
  seen.open_ms = await page.run(() => performance.timing.loadEventEnd - performance.timing.navigationStart);
  seen.sections = await page.run(() => [...document.querySelectorAll('section')].map(({ id }) => id));
  const has = (id) => seen.sections.includes(id);
  seen.widths = [];
  for (const width of [...WIDTHS, WIDEST, WIDTHS.at(-1)]) seen.widths.push(await atWidth(page, width, has('run'), pictures));
  seen.folded = await unfold(page);
  seen.text = await page.run(() => document.getElementById('report').innerText);
  seen.images = await page.run(() => document.images.length);
  if (has('each')) seen.requests = await useRequests(page);
  if (has('run')) seen.time = await useTimeline(page);
  if (has('stacks')) seen.stacks = await useStacks(page);
  if (has('names')) seen.names = await filterNames(page);
  seen.curves = await curves(page);
  seen.colours = await phaseColours(page);
  seen.explained = await explanation(page);
  seen.copied = await copy(page);
  seen.sql = await page.run(() => [...document.querySelectorAll('button.sql')].map((button) => {
    button.click();
    const text = button.closest('figure').querySelector('.statement pre');
    return button.getAttribute('aria-expanded') === 'true' && text.checkVisibility() && text.textContent.length;
  }));
  seen.looks = await looks(page);
  seen.problems = await page.run(() => self.problems);
  return seen;
}

async function complete(page) {
  await until(page, () => document.readyState === 'complete' && performance.timing.loadEventEnd > 0);
}

/** Waits until a condition holds in the page. */
async function until(page, holds, ...args) {
  for (const end = Date.now() + LIMIT_MS; !(await page.run(holds, ...args)); await pause(20)) {
    if (Date.now() > end) throw new Error(`not within ${LIMIT_MS} ms: ${holds}`);
  }
}

/** Checks the page at one width. Returns if it fits into the window, if the verdict is on the first screen, and what a drag over the timeline selects. */
async function atWidth(page, width, hasTimeline, pictures) {
  await page.resize(size(width));
  await until(page, (most) => [...document.querySelectorAll('.uplot')].every((chart) => chart.offsetWidth <= chart.parentElement.clientWidth && chart.offsetWidth > 0.98 * chart.parentElement.clientWidth) && innerWidth === most, width);
  const seen = await page.run(() => {
    scrollTo(0, 0);
    const verdict = document.querySelector('.verdict')?.getBoundingClientRect();
    return {
      width: innerWidth,
      fits: document.documentElement.scrollWidth <= innerWidth,
      verdict: verdict !== undefined && verdict.top >= 0 && verdict.bottom <= innerHeight && verdict.left >= 0 && verdict.right <= innerWidth,
    };
  });
  if (pictures && WIDTHS.includes(width)) fs.writeFileSync(path.join(pictures, `report-${width}.png`), withFewColours(await page.picture()));
  if (hasTimeline) seen.selected = await dragOver(page, 0.1, 0.2);
  return seen;
}

const requestsShown = (page) => page.run(() => document.querySelector('#request-list [aria-live]')?.textContent);
const selected = (page) => page.run(() => document.querySelector('#timeline [aria-live]').innerText);

/** Drags over a part of the first chart. Returns how many requests are left and what is selected then. */
async function dragOver(page, from, to) {
  await page.run(() => document.querySelector('#timeline .controls button')?.click());
  const over = await page.run(() => {
    const chart = document.querySelector('#timeline .u-over');
    chart?.scrollIntoView({ block: 'center' });
    return chart?.getBoundingClientRect().toJSON();
  });
  if (!over) return undefined;
  const { left, top, width, height } = over;
  await page.drag([left + width * from, top + height / 2], [left + width * to, top + height / 2]);
  const seen = [await requestsShown(page), await selected(page)];
  await page.run(() => document.querySelector('#timeline .controls button').click());
  return seen;
}

/** Unfolds all sections, the last one by its address. Returns how many were folded. */
async function unfold(page) {
  const folds = await page.run(() => {
    const all = [...document.querySelectorAll('section > details:not([open])')];
    all.slice(0, -1).forEach((one) => one.querySelector('summary').click());
    if (all.length > 0) location.hash = all.at(-1).parentElement.id;
    return all.length;
  });
  await until(page, () => document.querySelector('section > details:not([open])') === null);
  return folds;
}

/** Sorts, filters and pages through the requests. Returns the first request in each order, the filtered requests, and the status texts. */
function useRequests(page) {
  return page.run(() => {
    const list = document.getElementById('request-list');
    const [order, filter] = [list.querySelector('select'), list.querySelector('input')];
    const rows = () => [...list.querySelectorAll('tbody tr')].map((row) => row.cells[0].textContent);
    const says = () => list.querySelector('[aria-live]').textContent;
    const seen = { says: says() };
    seen.first = [...order.options].map(({ value }) => {
      order.value = value;
      order.dispatchEvent(new Event('change'));
      return rows()[0];
    });
    const [, next] = list.querySelectorAll('button');
    next.click();
    seen.next = says();
    filter.value = seen.first[0];
    filter.dispatchEvent(new Event('input'));
    seen.filtered = rows();
    filter.value = '';
    filter.dispatchEvent(new Event('input'));
    return seen;
  });
}

/** Selects times with keys, the mouse and incidents. Returns what was selected, and for each chart true if something is drawn. */
async function useTimeline(page) {
  const seen = { all: await requestsShown(page) };
  seen.drawn = await page.run(() => [...document.querySelectorAll('.uplot canvas')].map((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 2;
  }));
  await page.run(() => document.getElementById('timeline').focus());
  for (const key of ['+', '+', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) await page.press(key);
  seen.by_keys = [await requestsShown(page), await selected(page)];
  await page.press('0');
  seen.reset = await requestsShown(page);
  seen.by_mouse = await dragOver(page, 0.1, 0.2);
  seen.after_all = await dragOver(page, 0.97, 0.99);
  seen.incidents = await page.run(() => [...document.querySelectorAll('.incident')].map((mark) => {
    mark.click();
    const text = document.querySelector('#timeline [aria-live]').innerText;
    document.querySelector('#timeline .controls button').click();
    return [mark.dataset.tip, text];
  }));
  return seen;
}

/** Zooms into the stacks and back. Returns the texts of the frames before and after the zoom, and the number of frames at the end. */
async function useStacks(page) {
  const frames = () => page.run(() => [...document.querySelectorAll('#flame .frame')].map(({ title }) => title));
  const seen = { all: await frames() };
  await page.run(() => document.querySelector('#flame .frame').focus());
  await page.press('ArrowDown');
  await page.press('Enter');
  seen.zoomed = await frames();
  await page.run(() => document.querySelector('#flame .frame').focus());
  await page.press('Escape');
  seen.back = (await frames()).length;
  return seen;
}

/** Returns the number of names that remain with a filter that matches none. */
function filterNames(page) {
  return page.run(() => {
    const filter = document.querySelector('#names input');
    filter.value = 'no such name';
    filter.dispatchEvent(new Event('input'));
    return document.querySelectorAll('#names tbody tr').length;
  });
}

/** Returns, for each curve, the largest distance of a percentile mark from it in pixels, and its label. */
function curves(page) {
  return page.run(() => [...document.querySelectorAll('.distribution')].map((figure) => {
    const line = figure.querySelector('path');
    const { left, top, width, height } = figure.querySelector('svg').getBoundingClientRect();
    const points = [...line.getAttribute('d').slice(1).split('L')].map((point) => point.split(',').map(Number)).map(([x, y]) => [left + (x * width) / 100, top + (y * height) / 100]);
    const distance = (dot) => {
      const { left: x, top: y, width: w, height: h } = dot.getBoundingClientRect();
      return Math.min(...points.map(([px, py]) => Math.hypot(px - x - w / 2, py - y - h / 2)));
    };
    return [Math.max(...[...figure.querySelectorAll('.dot')].map(distance)), figure.querySelector('svg').getAttribute('aria-label')];
  }));
}

/** Returns, for some phases, the colour of the palette together with all colours in which parts with that name are drawn. */
function phaseColours(page) {
  return page.run(() => Object.fromEntries(['queue', 'prefill', 'decode'].map((phase) => {
    const probe = document.createElement('i');
    probe.style.color = `var(--${phase})`;
    document.body.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    const drawn = [...document.querySelectorAll('.bar g')].filter((part) => part.querySelector('title').textContent.startsWith(`${phase}: `));
    return [phase, [...new Set([color, ...drawn.map((part) => getComputedStyle(part.querySelector('rect')).fill)])]];
  })));
}

/** Returns the explanation that the first column header shows when it has the focus, and the names of the headers without one. */
function explanation(page) {
  return page.run(() => {
    const headers = [...document.querySelectorAll('th[scope=col]')].filter((head) => head.checkVisibility() && head.textContent !== '');
    headers[0]?.firstChild.focus();
    return [document.getElementById('tip').checkVisibility() && document.getElementById('tip').textContent, headers.filter((head) => !head.firstChild.dataset?.tip).map((head) => head.textContent)];
  });
}

/** Presses the first button that copies a command. Returns true once it confirms that. */
async function copy(page) {
  const button = '.command button';
  if (!(await page.run((wanted) => document.querySelector(wanted) !== null, button))) return undefined;
  await page.run((wanted) => document.querySelector(wanted).click(), button);
  await until(page, (wanted) => document.querySelector(wanted).textContent === 'copied', button);
  return true;
}

/** Returns the background colour of the page, if it has navigation, and if it fits into the window, for light mode, dark mode and printing. */
async function looks(page) {
  const seen = [];
  for (const [media, scheme] of [['', 'light'], ['', 'dark'], ['print', 'light']]) {
    await page.emulate(media, [{ name: 'prefers-color-scheme', value: scheme }]);
    seen.push(await page.run(() => [getComputedStyle(document.body).backgroundColor, document.querySelector('nav').checkVisibility(), document.documentElement.scrollWidth <= innerWidth]));
  }
  await page.emulate('', []);
  return seen;
}

async function main([file, option, pictures]) {
  const browser = new Chromium(process.env.CHROMIUM, ['--host-resolver-rules=MAP * ~NOTFOUND']);
  try {
    fs.writeSync(1, `${JSON.stringify(await use(await browser.page(), file, option === '--picture' && pictures))}\n`);
    return 0;
  } catch (error) {
    fs.writeSync(2, `page: ${error.message}\n`);
    return 1;
  } finally {
    await browser.close();
  }
}

process.exit(process.argv[2] ? await main(process.argv.slice(2)) : 2);
