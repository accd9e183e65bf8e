#!/usr/bin/env bash
# Shows that tpq tells a good trace from a broken one. Exit 0 good, 1 a case failed, 3 tpq cannot be set up here.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
cases=0

# expect CODE TEXT COMMAND...: the command exits with CODE and TEXT is in what it prints.
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

# trace FILE LINE...: one document with these events.
trace() {
  local file=$1 separator='' line
  shift
  {
    printf '{"traceEvents":[\n'
    for line in "$@"; do
      printf '%s%s\n' "$separator" "$line"
      separator=,
    done
    printf ']}\n'
  } > "$file"
}

tpq=$here/tpq
"$tpq" --setup || exit

outer='{"ph":"X","pid":7,"tid":7,"ts":10.000,"dur":5.000,"name":"outer","cat":"c"}'
inner='{"ph":"X","pid":7,"tid":7,"ts":11.000,"dur":1.250,"name":"inner","cat":"c","args":{"n":3}}'
across='{"ph":"X","pid":7,"tid":7,"ts":14.000,"dur":5.000,"name":"across","cat":"c"}'
instant='{"ph":"i","pid":7,"tid":7,"ts":12.500,"s":"t","name":"tick","cat":"c"}'
counter='{"ph":"C","pid":7,"tid":7,"ts":13.000,"name":"requests","args":{"running":2}}'
flow_start='{"ph":"s","pid":7,"tid":7,"ts":11.500,"id":31,"name":"request","cat":"flow"}'
flow_end='{"ph":"f","pid":8,"tid":8,"ts":21.500,"id":31,"bp":"e","name":"request","cat":"flow"}'
other='{"ph":"X","pid":8,"tid":8,"ts":21.000,"dur":2.000,"name":"other","cat":"c"}'

unfinished='{"ph":"B","pid":7,"tid":7,"ts":12.000,"name":"step","cat":"c","args":{"unfinished":true}}'

trace "$work/good.json" "$outer" "$inner" "$instant" "$counter" "$flow_start" "$other" "$flow_end"
gzip -k "$work/good.json"
trace "$work/unfinished.json" "$outer" "$unfinished"
trace "$work/torn.json" "$outer" "${inner:0:40}" "$instant"
trace "$work/id2.json" "$outer" "${flow_start/'"id":31'/'"id2":{"global":"0x1f"}'}"
trace "$work/overlap.json" "$outer" "$across"
trace "$work/negative.json" "$outer" "${inner/11.000/-1.000}"
head -n 3 "$work/good.json" > "$work/open.json"
printf '%s\n' "$outer" "$inner" > "$work/lines.json"
: > "$work/empty.json"
echo 'no trace at all' > "$work/text.json"

for good in good.json good.json.gz; do
  expect 0 '"problems":[]' "$tpq" --check "$work/$good" slices=4 flows=1 counters=1 processes=2 threads=2
done
expect 0 '[["inner",1250,3]]' "$tpq" "$work/good.json" \
  "select name, dur, extract_arg(arg_set_id, 'args.n') from slice where name = 'inner'"
expect 0 '[{"name":"tick","dur":0}]' "$tpq" --objects "$work/good.json" "select name, dur from slice where name = 'tick'"
expect 0 '[["step",-1]]' "$tpq" "$work/unfinished.json" "select name, dur from slice where name = 'step'"
expect 0 '"problems":[]' "$tpq" --check "$work/unfinished.json" slices=2
expect 1 'slices is 4, expected 5' "$tpq" --check "$work/good.json" slices=5
expect 1 'SQL error' "$tpq" "$work/good.json" 'select nothing'
expect 1 'cannot load' "$tpq" --check "$work/torn.json"
expect 1 'cannot load' "$tpq" --check "$work/absent.json"
expect 1 'cannot load' "$tpq" --check "$work/text.json"
expect 1 'incomplete' "$tpq" --check "$work/open.json"
expect 1 'flow_invalid_id' "$tpq" --check "$work/id2.json"
expect 1 'slice_drop_overlapping_complete_event' "$tpq" --check "$work/overlap.json"
expect 1 'trace_sorter_negative_timestamp_dropped' "$tpq" --check "$work/negative.json"
expect 1 'the trace holds no event' "$tpq" --check "$work/lines.json"
expect 1 'the trace holds no event' "$tpq" --check "$work/empty.json"
expect 0 $'false\ntrue' "$tpq" --loads "$work/torn.json" "$work/good.json"
expect 2 'no trace named' "$tpq"
expect 2 'do not go together' "$tpq" --check --objects "$work/good.json"
expect 2 'no query given' "$tpq" "$work/good.json"
expect 2 'spans=1' "$tpq" --check "$work/good.json" spans=1
expect 2 'unknown option' "$tpq" --chek "$work/good.json"
expect 3 'node 18 or newer' env NODE="$work/none" "$tpq" --setup
expect 3 'TPQ_NO_INSTALL' env -u WEB_DIST XDG_CACHE_HOME="$work/cache" TPQ_NO_INSTALL=1 "$tpq" --setup
expect 3 'cannot write' env -u WEB_DIST XDG_CACHE_HOME="$work/text.json" "$tpq" --setup
expect 3 'failed' env -u WEB_DIST XDG_CACHE_HOME="$work/cache" PYTHON=false "$tpq" --setup

expect 2 'usage: ui LINK' env CHROMIUM=true "$here/ui"
expect 2 'usage: ui LINK' env CHROMIUM=true "$here/ui" https://perfetto.example/
expect 1 'true ended' env CHROMIUM=true "$here/ui" 'https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/t.json'
expect 3 'Chromium is needed' env CHROMIUM="$work/none" "$here/ui" --setup
expect 3 'TPQ_NO_INSTALL' env -u WEB_DIST XDG_CACHE_HOME="$work/cache" TPQ_NO_INSTALL=1 "$here/ui" --setup

[ "$failed" = 0 ] && echo "selftest: $cases of $cases cases as expected"
exit "$failed"
