// The command line of tpq: parses the arguments, loads the trace, prints counts or rows. Started by the script `tpq`, which sets WEB_DIST.
import fs from 'node:fs';
import { Engine, EngineError } from './engine.mjs';

const USAGE = `usage: tpq TRACE SQL...
       tpq --check TRACE [slices=N] [flows=N] [counters=N] [processes=N] [threads=N]
       tpq --loads TRACE...
       tpq --setup`;
const COUNTS = {
  slices: 'select count(*) from slice', // instants are slices of duration 0
  flows: 'select count(*) from flow',
  counters: 'select count(*) from counter',
  processes: 'select count(*) from process where upid > 0',
  threads: 'select count(*) from thread where utid > 0',
};
const PROBLEMS = "select name, idx, severity, value from stats where severity in ('error', 'data_loss') and value > 0 order by name";

/** Writes a whole line, even to a full non-blocking pipe. */
function put(fd, text) {
  for (let bytes = Buffer.from(`${text}\n`); bytes.length;) {
    try {
      bytes = bytes.subarray(fs.writeSync(fd, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

const say = (text) => put(2, `tpq: ${text}`);

function usage(why) {
  say(`${why}\n${USAGE}`);
  process.exit(2);
}

/** Parses NAME=COUNT arguments into pairs. */
function expectations(words) {
  return words.map((word) => {
    const match = /^([a-z]+)=(\d+)$/.exec(word);
    if (!match || !Object.hasOwn(COUNTS, match[1])) usage(`${JSON.stringify(word)}: expected NAME=COUNT, where NAME is one of ${Object.keys(COUNTS).join(', ')}`);
    return [match[1], Number(match[2])];
  });
}

function parse(args) {
  const flags = args.filter((arg) => arg.startsWith('--'));
  const [trace, ...rest] = args.filter((arg) => !arg.startsWith('--'));
  for (const flag of flags) if (!['--check', '--loads'].includes(flag)) usage(`unknown option ${flag}`);
  if (flags.length > 1) usage(`${flags.join(' and ')} cannot be combined`);
  const checking = flags.includes('--check');
  if (trace === undefined) usage('no trace named');
  if (flags.includes('--loads')) return { traces: [trace, ...rest] };
  if (!checking && !rest.length) usage('no query given');
  return { trace, checking, queries: rest, expected: checking ? expectations(rest) : [] };
}

/** Prints the counts and the importer's complaints. Returns the exit code. */
function check(engine, expected) {
  const counts = {};
  for (const [name, sql] of Object.entries(COUNTS)) counts[name] = engine.query(sql).rows[0][0];
  const problems = engine.query(PROBLEMS).rows.map(([name, idx, severity, value]) => ({ name, idx, severity, value }));
  put(1, JSON.stringify({ ...counts, problems }));
  const bad = problems.map(({ name, idx, severity, value }) => `${severity} ${name}${idx === null ? '' : `[${idx}]`} = ${value}`);
  for (const [name, want] of expected) if (counts[name] !== want) bad.push(`${name} is ${counts[name]}, expected ${want}`);
  // Perfetto opens some broken files (for example raw JSON lines) without any complaint and shows nothing.
  if (!expected.length && !counts.slices && !counts.flows && !counts.counters) bad.push('the trace contains no event');
  for (const text of bad) say(`check failed: ${text}`);
  return bad.length ? 1 : 0;
}

/** Prints one line of rows for each query, even for one that fails. Returns the exit code. */
function run(engine, queries) {
  let code = 0;
  for (const sql of queries) {
    try {
      put(1, JSON.stringify(engine.query(sql).rows));
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      put(1, '[]');
      say(`SQL error: ${error.message.trim()}`);
      code = 1;
    }
  }
  return code;
}

async function started() {
  const engine = new Engine(process.env.WEB_DIST);
  await engine.ready();
  return engine;
}

/** Returns true if the engine loads a trace, or `null` if the engine breaks, which an earlier trace may have caused. */
function loadsIn(engine, trace) {
  try {
    engine.load(trace);
    return true;
  } catch (error) {
    return error instanceof EngineError ? false : null;
  }
}

/** Prints for each trace whether it loads. Uses one engine for all as long as it works. Returns the exit code. */
async function loads(traces) {
  let engine = await started();
  for (const trace of traces) {
    let isLoaded = loadsIn(engine, trace);
    if (isLoaded === null) {
      engine = await started();
      isLoaded = loadsIn(engine, trace);
    }
    put(1, JSON.stringify(isLoaded === true));
    if (isLoaded === null) engine = await started();
    else engine.reset();
  }
  return 0;
}

async function main() {
  const { trace, traces, checking, queries, expected } = parse(process.argv.slice(2));
  if (!process.env.WEB_DIST) usage('WEB_DIST is not set (the script tpq sets it)');
  if (traces) return loads(traces);
  try {
    fs.accessSync(trace, fs.constants.R_OK);
    const engine = new Engine(process.env.WEB_DIST);
    await engine.ready();
    engine.load(trace);
    return checking ? check(engine, expected) : run(engine, queries);
  } catch (error) {
    say(`cannot load ${trace}: ${(error.message || String(error)).trim()}`);
    if (process.env.TPQ_DEBUG) say(error.stack);
    return 1;
  }
}

process.exit(await main());
