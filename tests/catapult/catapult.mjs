// The importer of catapult, the code behind chrome://tracing: the viewer's bundle from the Perfetto UI without its views, run headless in a separate context, without
// browser or network. Imports traces and prints what the viewer would show. Started by the script `catapult`, which sets WEB_DIST.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import zlib from 'node:zlib';

const USAGE = `usage: catapult TRACE...
       catapult --setup`;

const say = (text) => process.stderr.write(`catapult: ${text}\n`);

const BUNDLE = 'catapult_trace_viewer.js';
/** Text at which the polyfills for the views end and catapult begins. */
const BEGIN = 'const global=this.window||this.global;this.tr=(function()';
/** Text at the start of each module. */
const MODULE = "'use strict';";
/** Modules that match this belong to a view, or to the library that views draw with. They need a document and may fail. */
const VIEW = /\btr\.ui\b|\bwindow\.d3\b/;

/** An error in the bundle, not in a trace. */
class BundleError extends Error {}

/** Returns the text of the bundle below a `web_dist` folder. */
function bundle(webDist) {
  const version = fs.readdirSync(webDist).find((name) => /^v\d/.test(name));
  const file = path.join(webDist, version ?? '', 'assets', BUNDLE);
  if (!fs.existsSync(file)) throw new BundleError(`${file}: not found`);
  return fs.readFileSync(file, 'utf8');
}

/** The importer's warning about a metadata record that it skips (FORMAT.md, `engine_settings`). The viewer does not show it. */
const SETTINGS = 'metadata_parse_error: Unrecognized metadata name: engine_settings';

/** Returns catapult's `tr` with everything that its importer needs. */
function catapult(text) {
  const begin = text.indexOf(BEGIN);
  if (begin < 0) throw new BundleError('the start of catapult was not found in the bundle');
  // catapult's authors call a JavaScript engine without a document vinn.
  const world = { isVinn: true, console: { log() {}, warn() {}, error() {} }, performance, setTimeout, clearTimeout, TextDecoder, TextEncoder, Polymer() {} };
  world.global = world;
  const context = vm.createContext(world);
  for (const module of text.slice(begin).split(MODULE)) {
    try {
      vm.runInContext(MODULE + module, context, { filename: BUNDLE });
    } catch (error) {
      if (!VIEW.test(module)) throw new BundleError(`${module.slice(0, 60)}…: ${error.message}`);
    }
  }
  return { tr: world.tr, context };
}

/** Imports one trace like the viewer does. Counts what it would show, and collects its warnings. */
function counts({ tr, context }, file) {
  let bytes = fs.readFileSync(file);
  if (bytes[0] === 0x1f) bytes = zlib.gunzipSync(bytes);
  const model = new tr.Model();
  context.trace = bytes.toString();
  // The importers detect strings by the constructors of their own context.
  const text = vm.runInContext('String(trace)', context);
  delete context.trace;
  new tr.importer.Import(model, new tr.importer.ImportOptions()).importTraces([text]);
  const [threads, processes] = [model.getAllThreads(), model.getAllProcesses()];
  const sum = (list, size) => list.reduce((total, one) => total + size(one), 0);
  const samples = (process) => sum(Object.values(process.counters), (counter) => sum(counter.series, (series) => series.samples.length));
  return {
    slices: sum(threads, (thread) => thread.sliceGroup.length),
    instants: sum(processes, (process) => process.instantEvents.length) + model.instantEvents.length,
    async: sum(threads, (thread) => slices(thread.asyncSliceGroup)),
    flows: model.flowEvents.length,
    counters: sum(processes, samples),
    processes: processes.filter((process) => process.name).length,
    threads: threads.length,
    rows: threads.filter((thread) => thread.sliceGroup.length).map(summary),
    warnings: model.importWarnings.map(({ type, message }) => `${type}: ${message}`).filter((warning) => warning !== SETTINGS),
  };
}

/** Returns what a thread shows: names of process and thread, number of slices, and total ns of the finished ones. */
function summary(thread) {
  const ns = ({ duration, didNotFinish }) => (didNotFinish ? 0 : Math.round(duration * 1e6));
  const { slices } = thread.sliceGroup;
  return [thread.parent.name ?? '', thread.name ?? '', slices.length, slices.reduce((sum, slice) => sum + ns(slice), 0)];
}

/** Counts async slices, including nested ones. */
function slices(group) {
  let count = 0;
  for (const _ of group.childEvents()) count += 1;
  return count;
}

/** Prints one line for a trace. Returns true if the viewer would show all of it. */
function show(importer, trace) {
  try {
    const found = counts(importer, trace);
    process.stdout.write(`${JSON.stringify({ trace, ...found })}\n`);
    for (const warning of found.warnings) say(`${trace}: ${warning}`);
    const events = found.slices + found.instants + found.async + found.flows + found.counters;
    if (!events) say(`${trace}: the trace contains no event`);
    return events > 0 && !found.warnings.length;
  } catch (error) {
    say(`cannot load ${trace}: ${error.message ?? error}`);
    return false;
  }
}

function main(words) {
  const [first] = words;
  const wrong = words.find((word) => word.startsWith('--') && (word !== '--setup' || words.length > 1));
  if (first === undefined || wrong !== undefined) {
    say(`${first === undefined ? 'no trace named' : `unknown option ${wrong}`}\n${USAGE}`);
    return 2;
  }
  try {
    const importer = catapult(bundle(process.env.WEB_DIST));
    if (first === '--setup') return 0;
    const shown = words.map((trace) => show(importer, trace));
    return shown.every(Boolean) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof BundleError)) throw error;
    say(`unavailable: ${error.message}`);
    return 3;
  }
}

process.exitCode = main(process.argv.slice(2));
