// Perfetto's trace processor: the worker bundle of its UI, run inside Node with a minimal worker environment and controlled with its
// byte-stream RPC. Needs no browser and no network.
import fs from 'node:fs';
import path from 'node:path';
import v8 from 'node:v8';
import { bytesField, fields, packed, uintField } from './wire.mjs';

// Methods and field numbers of the RPC (TraceProcessorRpc).
const APPEND = 1;
const FINALIZE = 2;
const QUERY = 3;
const STATUS = 10;
const RESET = 11;

const CHUNK_BYTES = 16 << 20;
const START_TRIES = 400; // of 25 ms each, while the wasm module compiles
// Number of bytes of a function that run before V8 optimises it. Most traces are small and load faster than the optimiser runs.
const TIERING_BUDGET = 1_000_000_000;

/** An error that the engine reports for the trace or the query. */
export class EngineError extends Error {}

export class Engine {
  #port;
  #sequence = 0;
  #inbox = [];

  constructor(webDist) {
    const version = fs.readdirSync(webDist).find((name) => /^v\d/.test(name));
    if (!version) throw new EngineError(`no Perfetto build under ${webDist}`);
    this.#port = { postMessage: (data) => this.#inbox.push(Buffer.from(data.buffer, data.byteOffset, data.length)) };
    const worker = { location: { href: `http://perfetto.invalid/${version}/engine_bundle.js` } };
    runBundle(path.join(webDist, version), worker);
    worker.onmessage({ data: this.#port });
  }

  /** Waits until the engine answers. */
  async ready() {
    for (let tries = 0; ; tries++) {
      await new Promise((done) => setTimeout(done, 25));
      try {
        if (this.#call(STATUS).length) return;
      } catch (error) {
        if (tries > START_TRIES) throw error;
      }
      if (tries > START_TRIES) throw new EngineError('the engine does not start');
      this.#sequence = 0;
      this.#inbox = [];
    }
  }

  /** Loads one trace file; throws an EngineError if the importer refuses it. */
  load(file) {
    const input = fs.openSync(file, 'r');
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let size; (size = fs.readSync(input, chunk, 0, chunk.length)) > 0;) {
      refuse(this.#call(APPEND, [bytesField(101, chunk.subarray(0, size))]), 201, 2);
    }
    fs.closeSync(input);
    refuse(this.#call(FINALIZE), 212, 1);
  }

  /** Forgets the trace, so that another one can be loaded. */
  reset() {
    this.#call(RESET);
  }

  /** Runs one query; returns its column names and its rows. */
  query(sql) {
    const columns = [];
    const cells = [];
    for (const result of pick(this.#call(QUERY, [bytesField(103, bytesField(1, sql))]), 203)) {
      for (const [field, value] of fields(result)) {
        if (field === 1) columns.push(value.toString());
        else if (field === 2 && value.length) throw new EngineError(value.toString());
        else if (field === 3) for (const cell of decodeCells(value)) cells.push(cell);
      }
    }
    const rows = [];
    for (let at = 0; columns.length && at < cells.length; at += columns.length) rows.push(cells.slice(at, at + columns.length));
    return { columns, rows };
  }

  /** Sends one request and returns the messages of the answer. The engine is synchronous once its module has started. */
  #call(method, extra = []) {
    const request = bytesField(1, Buffer.concat([uintField(1, this.#sequence++), uintField(2, method), ...extra]));
    this.#port.onmessage({ data: new Uint8Array(request) });
    const replies = [...pick([Buffer.concat(this.#inbox)], 1)];
    this.#inbox = [];
    for (const fatal of pick(replies, 5)) throw new EngineError(fatal.toString());
    return replies;
  }
}

/** Evaluates the worker bundle in `dir` against `worker`, with the few globals that it needs. */
function runBundle(dir, worker) {
  v8.setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
  const asset = (url) => fs.readFileSync(path.join(dir, path.basename(String(url))));
  class FakeXhr {
    open(_method, url) {
      this.url = url;
    }

    send() {
      const bytes = asset(this.url);
      this.status = 200;
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      this.onload?.();
    }
  }
  const fetchAsset = async (url) => new Response(asset(url), { headers: { 'content-type': 'application/wasm' } });
  const log = process.env.TPQ_DEBUG ? console.error : () => {};
  const fakeConsole = { log, info: log, debug: log, warn: log, error: log };
  const globals = {
    self: worker,
    location: worker.location,
    process: undefined, // otherwise the bundle detects Node and looks for files
    WorkerGlobalScope: function WorkerGlobalScope() {},
    importScripts: () => {},
    XMLHttpRequest: FakeXhr,
    fetch: fetchAsset,
    console: fakeConsole,
  };
  const bundle = new Function(...Object.keys(globals), fs.readFileSync(path.join(dir, 'engine_bundle.js'), 'utf8'));
  bundle(...Object.values(globals));
}

/** Yields the values of the field `wanted` in all messages. */
function* pick(messages, wanted) {
  for (const message of messages) for (const [field, value] of fields(message)) if (field === wanted) yield value;
}

/** Throws the error text in a reply, if there is one. */
function refuse(replies, result, text) {
  for (const error of pick(pick(replies, result), text)) if (error.length) throw new EngineError(error.toString());
}

/** Decodes one batch of cells, in row order. */
function* decodeCells(batch) {
  const column = { types: [], ints: [], doubles: [], blobs: [], strings: [] };
  for (const [field, value] of fields(batch)) {
    if (field === 1) column.types = column.types.concat(packed(value));
    else if (field === 2) column.ints = column.ints.concat(packed(value));
    else if (field === 3) column.doubles = column.doubles.concat([...decodeDoubles(value)]);
    else if (field === 4) column.blobs.push(value);
    else if (field === 5) column.strings = value.toString().split('\0');
  }
  const next = Object.fromEntries(Object.entries(column).map(([name, values]) => [name, values.values()]));
  const nextValue = (name) => next[name].next().value;
  for (const type of column.types) {
    if (type === 1n) yield null;
    else if (type === 2n) yield number(nextValue('ints'));
    else if (type === 3n) yield nextValue('doubles');
    else if (type === 4n) yield nextValue('strings');
    else yield Buffer.from(nextValue('blobs')).toString('base64');
  }
}

function* decodeDoubles(bytes) {
  for (let at = 0; at < bytes.length; at += 8) yield bytes.readDoubleLE(at);
}

/** Returns an integer as a JSON number if that is exact, and as a string of digits otherwise. */
function number(raw) {
  const value = BigInt.asIntN(64, raw);
  return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER ? String(value) : Number(value);
}
