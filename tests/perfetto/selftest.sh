#!/usr/bin/env bash
# Tests that tpq accepts good traces and rejects broken ones. Exit 0: good. 1: a case failed. 3: tpq cannot be set up here.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
cases=0

# expect CODE TEXT COMMAND...: checks that the command exits with CODE and prints TEXT.
expect() {
  local code=$1 text=$2 rc=0
  shift 2
  cases=$((cases + 1))
  "$@" > "$work/out" 2>&1 || rc=$?
  if [ "$rc" != "$code" ] || ! grep -qF -- "$text" "$work/out"; then
    echo "selftest: ${*##*/}: exit $rc, expected $code and '$text'; it printed:" >&2
    sed 's/^/    /' "$work/out" >&2
    failed=1
  fi
}

# trace FILE LINE LINE...: writes a document with these events.
trace() {
  { printf '{"traceEvents":[\n%s\n' "$2"; printf ',%s\n' "${@:3}"; echo ']}'; } > "$1"
}

tpq=$here/tpq
"$tpq" --setup || exit

outer='{"ph":"X","pid":7,"tid":7,"ts":10.000,"dur":5.000,"name":"outer","cat":"c"}'
inner='{"ph":"X","pid":7,"tid":7,"ts":11.000,"dur":1.250,"name":"inner","cat":"c","args":{"n":3}}'
across='{"ph":"X","pid":7,"tid":7,"ts":14.000,"dur":5.000,"name":"across","cat":"c"}'
flow_start='{"ph":"s","pid":7,"tid":7,"ts":11.500,"id":31,"name":"request","cat":"flow"}'
flow_end='{"ph":"f","pid":7,"tid":7,"ts":14.500,"id":31,"bp":"e","name":"request","cat":"flow"}'

trace "$work/good.json" "$outer" "$inner" "$flow_start" "$flow_end"
trace "$work/torn.json" "$outer" "${inner:0:40}" "$inner"
trace "$work/id2.json" "$outer" "${flow_start/'"id":31'/'"id2":{"global":"0x1f"}'}"
trace "$work/overlap.json" "$outer" "$across"
trace "$work/negative.json" "$outer" "${inner/11.000/-1.000}"
head -n 3 "$work/good.json" > "$work/open.json"
printf '%s\n' "$outer" "$inner" > "$work/lines.json"

expect 0 '"problems":[]' "$tpq" --check "$work/good.json" slices=2 flows=1
expect 0 '[["inner",1250,3]]' "$tpq" "$work/good.json" \
  "select name, dur, extract_arg(arg_set_id, 'args.n') from slice where name = 'inner'"
expect 1 'slices is 2, expected 5' "$tpq" --check "$work/good.json" slices=5
expect 1 'cannot load' "$tpq" --check "$work/torn.json"
expect 1 'incomplete' "$tpq" --check "$work/open.json"
expect 1 'flow_invalid_id' "$tpq" --check "$work/id2.json"
expect 1 'slice_drop_overlapping_complete_event' "$tpq" --check "$work/overlap.json"
expect 1 'trace_sorter_negative_timestamp_dropped' "$tpq" --check "$work/negative.json"
expect 1 'the trace contains no event' "$tpq" --check "$work/lines.json"

[ "$failed" = 0 ] && echo "selftest: $cases of $cases cases as expected"
exit "$failed"
