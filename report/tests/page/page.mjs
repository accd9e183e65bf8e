// Opens a page of a report and uses it: sorts, filters, zooms, unfolds, in the dark and on paper. Started by the script `page`.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Chromium } from '../../../tests/perfetto/chromium.mjs';

const LIMIT_MS = 60_000;
const SIZE = { width: 1240, height: 900, deviceScaleFactor: 1 };

/** Everything that the page shows and does. */
async function use(page, file, picture) {
  await page.before(() => {
    self.problems = [];
    addEventListener('error', ({ message }) => self.problems.push(message));
    addEventListener('securitypolicyviolation', ({ violatedDirective }) => self.problems.push(violatedDirective));
  });
  await page.resize(SIZE);
  await page.open(pathToFileURL(path.resolve(file)).href);
  await complete(page);
  const seen = {};
  seen.sections = await page.run(() => [...document.querySelectorAll('section')].map(({ id }) => id));
  seen.text = await page.run(() => document.getElementById('report').innerText);
  seen.images = await page.run(() => document.images.length);
  if (picture) fs.writeFileSync(picture, await page.picture());
  const has = (id) => seen.sections.includes(id);
  if (has('each')) seen.requests = await useRequests(page);
  if (has('time')) seen.time = await useTimeline(page);
  if (has('stacks')) seen.stacks = await useStacks(page);
  if (has('names')) seen.names = await filterNames(page);
  seen.sql = await page.run(() => [...document.querySelectorAll('details.sql')].map((details) => {
    details.querySelector('summary').click();
    return details.open && details.querySelector('pre').checkVisibility() && details.querySelector('pre').textContent.length;
  }));
  seen.looks = await looks(page);
  seen.problems = await page.run(() => self.problems);
  return seen;
}

async function complete(page) {
  for (const end = Date.now() + LIMIT_MS; ; ) {
    if (await page.run(() => document.readyState === 'complete' && performance.timing.loadEventEnd > 0)) return;
    if (Date.now() > end) throw new Error(`not loaded after ${LIMIT_MS} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** The first request in each order, how many of all have a text in their id, and what the second page has. */
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

/** How many requests are left after zooms by keys and by the mouse, and whether every chart has lines. */
async function useTimeline(page) {
  const says = () => page.run(() => document.querySelector('#request-list [aria-live]')?.textContent);
  const command = () => page.run(() => document.querySelector('#timeline [aria-live]').textContent);
  const seen = { all: await says() };
  seen.drawn = await page.run(() => [...document.querySelectorAll('#timeline canvas')].map((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 2;
  }));
  await page.run(() => document.getElementById('timeline').focus());
  for (const key of ['+', '+', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) await page.press(key);
  seen.by_keys = [await says(), await command()];
  await page.press('0');
  seen.reset = await says();
  const { left, top, width, height } = await page.run(() => {
    const over = document.querySelector('#timeline .u-over');
    over.scrollIntoView({ block: 'center' });
    return over.getBoundingClientRect().toJSON();
  });
  await page.drag([left + width * 0.1, top + height / 2], [left + width * 0.2, top + height / 2]);
  seen.by_mouse = [await says(), await command()];
  await page.run(() => document.querySelector('#timeline button').click());
  return seen;
}

/** How many frames there are, and what stands in the first one before and after a zoom and the way back. */
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

/** How many names a filter leaves that no name passes. */
function filterNames(page) {
  return page.run(() => {
    const filter = document.querySelector('#names input');
    filter.value = 'no such name';
    filter.dispatchEvent(new Event('input'));
    return document.querySelectorAll('#names tbody tr').length;
  });
}

/** The color of the page, whether it has navigation, and whether it fits into the window: in daylight, in the dark and on paper. */
async function looks(page) {
  const seen = [];
  for (const [media, scheme] of [['', 'light'], ['', 'dark'], ['print', 'light']]) {
    await page.emulate(media, [{ name: 'prefers-color-scheme', value: scheme }]);
    seen.push(await page.run(() => [getComputedStyle(document.body).backgroundColor, document.querySelector('nav').checkVisibility(), document.documentElement.scrollWidth <= innerWidth]));
  }
  await page.emulate('', []);
  return seen;
}

async function main([file, option, picture]) {
  const browser = new Chromium(process.env.CHROMIUM, ['--host-resolver-rules=MAP * ~NOTFOUND']);
  try {
    fs.writeSync(1, `${JSON.stringify(await use(await browser.page(), file, option === '--picture' && picture))}\n`);
    return 0;
  } catch (error) {
    fs.writeSync(2, `page: ${error.message}\n`);
    return 1;
  } finally {
    await browser.close();
  }
}

process.exit(process.argv[2] ? await main(process.argv.slice(2)) : 2);
