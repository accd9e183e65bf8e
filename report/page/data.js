// The data of the report, and names for its values.

const data = JSON.parse(document.getElementById('data').textContent);

/** Names of the levels and rates that change over time. */
const LEVELS = {
  under_way: 'in flight', running: 'running', waiting: 'queued', kv_used_percent: 'KV cache use',
  output_tokens_per_s: 'output tokens per second', busy_percent: 'busy', longest_step_ns: 'longest step',
};

/** Returns the name of a process. */
function processName(number) {
  const process = data.recorded.processes[number];
  return process?.device_name ?? process?.name ?? `process ${process?.pid ?? number}`;
}
