// The command line of ui: opens a link in the Perfetto UI as if it came from the real site, waits for the trace, prints its counts. Started by the script `ui`.
import fs from 'node:fs';
import { Chromium } from './chromium.mjs';
import { HOST, serve } from './site.mjs';

const USAGE = `usage: ui LINK [--block]
       ui --setup`;
const LIMIT_MS = 120_000;
const SHOWN_MS = 20_000;
const COUNTS = { slices: 'select count(*) from slice', flows: 'select count(*) from flow', counters: 'select count(*) from counter' };
const PROBLEMS = "select count(*) from stats where severity in ('error', 'data_loss') and value > 0";

const say = (text) => fs.writeSync(2, `ui: ${text}\n`);

function parse(args) {
  const [link, option, ...rest] = args;
  const isKnown = link?.startsWith(`https://${HOST}/`) && [undefined, '--block'].includes(option) && !rest.length;
  return isKnown ? { link, block: option !== undefined } : undefined;
}

/** Returns flags that make the server on `port` appear as Perfetto's site in the public network, and make everything else except this machine unreachable. */
function flags(port) {
  return [
    `--host-resolver-rules=MAP ${HOST}:443 127.0.0.1:${port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
    `--ip-address-space-overrides=127.0.0.1:${port}=public`,
    '--ignore-certificate-errors',
  ];
}

/** Answers the browser's permission prompt for access to this machine on behalf of the user. */
async function answer(browser, setting) {
  // The name in Chromium 145 and later, and the previous name.
  for (const name of ['loopback-network', 'local-network-access']) {
    await browser.call('Browser.setPermission', { permission: { name }, setting, origin: `https://${HOST}` }).catch(() => {});
  }
}

/** Waits until the page has loaded the trace. */
async function loaded(page) {
  for (const end = Date.now() + LIMIT_MS; ; ) {
    const state = await page.run(() => {
      const box = document.querySelector('.pf-modal-dialog');
      if (box) return { error: box.innerText };
      return { done: Boolean(self.app?.trace) && !/Loading trace|Opening trace/i.test(document.body.innerText) };
    });
    if (state.error) throw new Error(state.error.trim().split('\n').slice(0, 8).join(' | '));
    if (state.done) return;
    if (Date.now() > end) throw new Error(`not loaded after ${LIMIT_MS} ms`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

const query = (page, sql) =>
  page.run(async (text) => {
    const result = await self.app.trace.engine.query(text);
    return Number(result.iter({}).get(result.columns()[0]));
  }, sql);

/** Returns the times in ns between which the page shows the trace. If the link sets them, they take effect some time after the trace has loaded. */
async function shown(page, link) {
  const asked = /visStart=(\d+)/.exec(link)?.[1];
  for (const end = Date.now() + SHOWN_MS; ; ) {
    const found = await page.run(() => {
      const { start, end } = self.app.trace.timeline.visibleWindow.toTimeSpan();
      return [Number(start), Number(end)];
    });
    if (asked === undefined || found[0] === Number(asked) || Date.now() > end) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** Returns the processes in page order, each with whether it is expanded. Startup commands of a link take effect some time after the trace has loaded. */
async function groups(page, link) {
  const pattern = /startupCommands=/.test(link);
  for (const end = Date.now() + SHOWN_MS; ; ) {
    const found = await page.run(() => self.app.trace.workspace.children.map(({ name, expanded }) => [name, expanded]));
    if (!pattern || found.some(([, expanded]) => expanded) || Date.now() > end) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
}

async function report(page, { link }) {
  await page.open(link);
  await loaded(page);
  const counts = {};
  for (const [name, sql] of Object.entries(COUNTS)) counts[name] = await query(page, sql);
  counts.problems = await query(page, PROBLEMS);
  counts.shown_ns = await shown(page, link);
  counts.groups = await groups(page, link);
  fs.writeSync(1, `${JSON.stringify(counts)}\n`);
}

async function main(options) {
  const server = await serve(process.env.WEB_DIST);
  const browser = new Chromium(process.env.CHROMIUM, flags(server.address().port));
  const dialog = new Promise((_, fail) => (browser.onDialog = (text) => fail(new Error(text))));
  try {
    await answer(browser, options.block ? 'denied' : 'granted');
    await Promise.race([report(await browser.page(), options), dialog]);
    return 0;
  } catch (error) {
    say(error.message);
    return 1;
  } finally {
    await browser.close();
    server.close();
  }
}

const options = parse(process.argv.slice(2));
if (!options || !process.env.WEB_DIST || !process.env.CHROMIUM) say(USAGE);
process.exit(options && process.env.WEB_DIST && process.env.CHROMIUM ? await main(options) : 2);
