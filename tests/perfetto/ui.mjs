// The command line of ui: opens a link in the Perfetto UI as its own site would, waits for the trace, prints its counts. Started by the script `ui`.
import fs from 'node:fs';
import { Chromium } from './chromium.mjs';
import { HOST, serve } from './site.mjs';

const USAGE = `usage: ui LINK [--block] [--picture OUT.png] [--request OUT.png]
       ui --setup`;
const WIDTH = 1000; // of a picture for a page
const LIMIT_MS = 120_000;
const SHOWN_MS = 20_000;
const COUNTS = { slices: 'select count(*) from slice', flows: 'select count(*) from flow', counters: 'select count(*) from counter' };
const PROBLEMS = "select count(*) from stats where severity in ('error', 'data_loss') and value > 0";

const say = (text) => fs.writeSync(2, `ui: ${text}\n`);

function parse(args) {
  const options = { link: undefined, block: false, picture: undefined, request: undefined };
  for (let at = 0; at < args.length; at++) {
    if (args[at] === '--block') options.block = true;
    else if (args[at] === '--picture' && args[at + 1]) options.picture = args[++at];
    else if (args[at] === '--request' && args[at + 1]) options.request = args[++at];
    else if (args[at].startsWith(`https://${HOST}/`) && !options.link) options.link = args[at];
    else return undefined;
  }
  return options.link && options;
}

/** Flags that make the server on `port` Perfetto's site in the public network, and nothing but this machine reachable. */
function flags(port) {
  return [
    `--host-resolver-rules=MAP ${HOST}:443 127.0.0.1:${port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
    `--ip-address-space-overrides=127.0.0.1:${port}=public`,
    '--ignore-certificate-errors',
  ];
}

/** Answers the browser's question whether the page may reach this machine, as its user would. */
async function answer(browser, setting) {
  // The name in Chromium 145 and later, and the one before.
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

/** The whole trace without what is not it. */
async function takePicture(page, file) {
  await page.run(async () => {
    if (self.app.sidebar.visible) self.app.sidebar.toggleVisibility();
    document.querySelector('.pf-cookie-consent')?.remove();
    await self.app.commands.runCommand('dev.perfetto.ExpandAllGroups');
    await new Promise((done) => setTimeout(done, 3000)); // the tracks are drawn when their data have come
  });
  fs.writeFileSync(file, await page.picture());
}

/** The slices of the request that came to an NPU most quickly, from its row in the API server to a kernel, in the demo's trace. */
const WAY = `
  SELECT http.id AS http, added.id AS added, queued.id AS queued, launched.id AS launched, kernel.id AS kernel, http.ts AS from_ns, kernel.ts AS to_ns
  FROM slice added JOIN slice http ON http.name LIKE 'http.%' AND http.dur > 0
    AND extract_arg(http.arg_set_id, 'args.request_id') = extract_arg(added.arg_set_id, 'args.request_id')
  JOIN flow arrived ON arrived.slice_out = added.id JOIN slice queued ON queued.id = arrived.slice_in
  JOIN flow sent ON sent.slice_out = queued.id AND sent.trace_id = arrived.trace_id JOIN slice batch ON batch.id = sent.slice_in
  JOIN slice launched ON launched.track_id = batch.track_id AND launched.ts BETWEEN batch.ts AND batch.ts + batch.dur AND launched.category = 'kernel'
  JOIN flow ran ON ran.slice_out = launched.id JOIN slice kernel ON kernel.id = ran.slice_in
  WHERE added.name = 'AsyncLLMEngine.add_request' ORDER BY kernel.ts - http.ts LIMIT 1`;

/** The rows that one request passes on its way to an NPU, below each other, with the arrows that lead to a kernel. */
async function takePictureOfRequest(page, file) {
  await page.resize({ width: WIDTH, height: 1000, deviceScaleFactor: 2 });
  const height = await page.run(async (sql) => {
    const { trace } = self.app;
    const { currentWorkspace: workspace } = trace.workspaces;
    if (self.app.sidebar.visible) self.app.sidebar.toggleVisibility();
    document.querySelector('.pf-cookie-consent')?.remove();
    const first = async (sql) => {
      const result = await trace.engine.query(sql);
      const row = result.iter({});
      return Object.fromEntries(result.columns().map((name) => [name, row.get(name)]));
    };
    const registered = async (track) => {
      for (;;) {
        const found = trace.tracks.getAllTracks().find((one) => one.tags?.trackIds?.includes(track));
        if (found && workspace.getTrackByUri(found.uri)) return found.uri;
        await new Promise((done) => setTimeout(done, 100)); // plugins make them after the trace has loaded
      }
    };
    const way = await first(sql);
    for (const slice of [way.http, way.added, way.queued, way.launched, way.kernel]) {
      const { track, thread, process } = await first(`SELECT track_id AS track, thread.name AS thread, process.name AS process
        FROM slice JOIN thread_track ON track_id = thread_track.id JOIN thread USING (utid) JOIN process USING (upid) WHERE slice.id = ${slice}`);
      const uri = await registered(Number(track));
      workspace.getTrackByUri(uri).pin();
      workspace.pinnedTracks.at(-1).name = `${process}: ${thread}`; // a pinned row has no process above it
    }
    const [from, to] = [BigInt(way.from_ns), BigInt(way.to_ns)];
    trace.timeline.setViewportTime(from - (to - from) / 20n, to + (to - from));
    trace.selection.selectSqlEvent('slice', Number(way.kernel), { scrollToSelection: false });
    await new Promise((done) => setTimeout(done, 1000)); // the details open
    await self.app.commands.runCommand('dev.perfetto.ToggleDrawer');
    const rows = document.querySelector('[class*=pinned]');
    rows.scrollTop = 0;
    await new Promise((done) => setTimeout(done, 3000)); // the rows and arrows are drawn when their data have come
    return rows.getBoundingClientRect().bottom;
  }, WAY);
  fs.writeFileSync(file, await page.picture({ x: 0, y: 0, width: WIDTH, height, scale: 1 }));
}

/** The times in ns between which the page shows the trace. Those that a link asks for come some time after the trace has loaded. */
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

async function look(page, { link, picture, request }) {
  if (request) await page.before(() => localStorage.setItem('perfettoFeatureFlags', '{"showIndirectPrecedingFlows":"OVERRIDE_TRUE"}'));
  await page.open(link);
  await loaded(page);
  const counts = {};
  for (const [name, sql] of Object.entries(COUNTS)) counts[name] = await query(page, sql);
  counts.problems = await query(page, PROBLEMS);
  counts.shown_ns = await shown(page, link);
  if (picture) await takePicture(page, picture);
  if (request) await takePictureOfRequest(page, request);
  fs.writeSync(1, `${JSON.stringify(counts)}\n`);
}

async function main(options) {
  const server = await serve(process.env.WEB_DIST);
  const browser = new Chromium(process.env.CHROMIUM, flags(server.address().port));
  const dialog = new Promise((_, fail) => (browser.onDialog = (text) => fail(new Error(text))));
  try {
    await answer(browser, options.block ? 'denied' : 'granted');
    await Promise.race([look(await browser.page(), options), dialog]);
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
