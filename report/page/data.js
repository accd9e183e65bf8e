// The report, and the names of what it has.

const data = JSON.parse(document.getElementById('data').textContent);

/** Levels and rates that change with time, by the names that the report has for them everywhere. */
const LEVELS = {
  under_way: 'in flight', running: 'running', waiting: 'waiting', kv_used_percent: 'KV cache use',
  output_tokens_per_s: 'output tokens per second', busy_percent: 'busy', longest_step_ns: 'longest step',
};

/** The name of a process. */
function processName(number) {
  const process = data.recorded.processes[number];
  return process?.device_name ?? process?.name ?? `process ${process?.pid ?? number}`;
}
