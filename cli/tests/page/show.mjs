// Command line of the script `show`: opens a page, waits until it shows one text after the other, and prints what the page shows then.
import fs from 'node:fs';
import { Chromium } from '../../../tests/perfetto/chromium.mjs';

const USAGE = 'usage: show URL TEXT...';
const LIMIT_MS = 30_000;

/** Returns what the page shows, and the errors of its scripts so far. */
const shown = (page) => page.run(() => ({ text: document.body?.innerText ?? '', errors: self.errors ?? [] }));

/** Waits until the page shows a text. */
async function wait(page, text) {
  for (const end = Date.now() + LIMIT_MS; ; ) {
    const found = await shown(page);
    if (found.text.includes(text)) return found;
    if (Date.now() > end) throw new Error(`expected "${text}" within ${LIMIT_MS} ms, found ${JSON.stringify(found)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function main([url, ...texts]) {
  if (url === undefined || texts.length === 0) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  const browser = new Chromium(process.env.CHROMIUM, []);
  try {
    const page = await browser.page();
    await page.before(() => {
      self.errors = [];
      self.addEventListener('error', (event) => self.errors.push(event.message));
      self.addEventListener('unhandledrejection', (event) => self.errors.push(String(event.reason)));
    });
    await page.open(url);
    for (const text of texts) {
      const found = await wait(page, text);
      fs.writeSync(1, `${JSON.stringify(found)}\n`);
      fs.writeSync(2, `show: shown: ${text}\n`); // lets the caller continue
    }
    return 0;
  } catch (error) {
    process.stderr.write(`show: ${error.message}\n`);
    return 1;
  } finally {
    await browser.close();
  }
}

process.exitCode = await main(process.argv.slice(2));
