// A headless Chromium, controlled with the DevTools protocol over a pipe. Needs no npm package and no port.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

// Nothing may be fetched except for what the page requests, and no first-run page may appear.
const QUIET = ['--headless', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--disable-dev-shm-usage', '--window-size=1600,900', '--hide-scrollbars', '--remote-debugging-pipe'];

export class Chromium {
  #child;
  #profile;
  #ended;
  #last = 0;
  #waiting = new Map();
  #stderr = '';
  #failed;

  /** Called with the text of each dialog that a page opens. A dialog blocks its page. */
  onDialog = () => {};

  /** Starts `program` with a new profile, and with `flags` after the usual ones. */
  constructor(program, flags) {
    this.#profile = fs.mkdtempSync(path.join(os.tmpdir(), 'sa-chromium-'));
    // Chromium's sandbox works neither for root nor in most containers. Only the page served here is shown.
    const args = [...QUIET, '--no-sandbox', `--user-data-dir=${this.#profile}`, ...flags, 'about:blank'];
    this.#child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] });
    this.#ended = new Promise((done) => this.#child.on('close', done));
    this.#child.on('error', (error) => this.#fail(error.message));
    this.#child.on('exit', (code, signal) => this.#fail(`${program} ended (${signal ?? code}): ${this.#stderr.trim()}`));
    this.#child.stderr.on('data', (text) => (this.#stderr = (this.#stderr + text).slice(-2000)));
    this.#child.stdio[3].on('error', () => {}); // the exit handler reports the end
    let rest = Buffer.alloc(0);
    this.#child.stdio[4].on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) this.#answer(JSON.parse(rest.subarray(0, end)));
    });
  }

  /** Opens an empty page. */
  async page() {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    await this.call('Page.enable', {}, sessionId); // enables dialog events
    return new Page(this, sessionId);
  }

  /** Runs one command and returns its result. */
  call(method, params = {}, sessionId = undefined) {
    const id = ++this.#last;
    return new Promise((done, fail) => {
      if (this.#failed) return fail(this.#failed);
      this.#waiting.set(id, { done, fail, method });
      this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** Ends the browser, waits until all its processes are gone, and removes its profile. */
  async close() {
    this.#child.kill('SIGKILL'); // the other processes exit when they lose the main one
    await this.#ended; // no process holds its stderr any more
    fs.rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  #answer({ id, result, error, method, params }) {
    if (method === 'Page.javascriptDialogOpening') this.onDialog(params.message);
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    if (error) waiting.fail(new Error(`${waiting.method}: ${error.message}`));
    else waiting.done(result);
  }

  #fail(why) {
    this.#failed ??= new Error(why);
    for (const { fail } of this.#waiting.values()) fail(this.#failed);
    this.#waiting.clear();
  }
}

class Page {
  #browser;
  #session;

  constructor(browser, session) {
    this.#browser = browser;
    this.#session = session;
  }

  async open(url) {
    const { errorText } = await this.#call('Page.navigate', { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
  }

  /** Runs `body` in every document opened from now on, before its own scripts. */
  async before(body) {
    await this.#call('Page.addScriptToEvaluateOnNewDocument', { source: `(${body})()` });
  }

  /** Runs the function `body` in the page and returns its value. */
  async run(body, ...args) {
    const expression = `(${body})(...${JSON.stringify(args)})`;
    const { result, exceptionDetails: thrown } = await this.#call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (thrown) throw new Error(thrown.exception?.description ?? thrown.text);
    return result.value;
  }

  /** Sets the size of the page in pixels. `deviceScaleFactor` is the number of picture pixels per page pixel. */
  async resize(size) {
    await this.#call('Emulation.setDeviceMetricsOverride', { ...size, mobile: false });
  }

  /** Emulates media and media features, for example `print`, `[{ name: 'prefers-color-scheme', value: 'dark' }]`. */
  async emulate(media, features) {
    await this.#call('Emulation.setEmulatedMedia', { media, features });
  }

  /** Presses the mouse button at one point of the view, moves to another and releases it there. */
  async drag([fromX, fromY], [toX, toY]) {
    const at = (type, x, y) => this.#call('Input.dispatchMouseEvent', { type, x, y, button: 'left', buttons: type === 'mouseReleased' ? 0 : 1, clickCount: 1 });
    await at('mouseMoved', fromX, fromY);
    await at('mousePressed', fromX, fromY);
    await at('mouseMoved', (fromX + toX) / 2, (fromY + toY) / 2);
    await at('mouseMoved', toX, toY);
    await at('mouseReleased', toX, toY);
  }

  /** Presses a key, named like in keyboard events. */
  async press(key) {
    for (const type of ['keyDown', 'keyUp']) await this.#call('Input.dispatchKeyEvent', { type, key, text: type === 'keyDown' && key.length === 1 ? key : undefined });
  }

  /** Returns a screenshot of the page as PNG bytes. */
  async picture() {
    const { data } = await this.#call('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(data, 'base64');
  }

  #call(method, params) {
    return this.#browser.call(method, params, this.#session);
  }
}
