// The command line of catapult: imports traces and prints what the viewer would show of each. Started by the script `catapult`, which sets WEB_DIST and BUNDLE_SHA256.
import { BundleError, bundle, catapult, counts } from './importer.mjs';

const USAGE = `usage: catapult TRACE...
       catapult --setup`;

const say = (text) => process.stderr.write(`catapult: ${text}\n`);

/** Prints one line for a trace; whether the viewer would show all of it. */
function show(importer, trace) {
  try {
    const found = counts(importer, trace);
    process.stdout.write(`${JSON.stringify({ trace, ...found })}\n`);
    for (const warning of found.warnings) say(`${trace}: ${warning}`);
    const events = found.slices + found.instants + found.async + found.flows + found.counters;
    if (!events) say(`${trace}: the trace holds no event`);
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
    const importer = catapult(bundle(process.env.WEB_DIST, process.env.BUNDLE_SHA256));
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
