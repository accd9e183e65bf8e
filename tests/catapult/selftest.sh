#!/usr/bin/env bash
# Shows that catapult tells a good trace from a broken one. Exit 0 good, 1 a case failed, 3 it cannot be set up here.
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

# trace FILE EVENT...: one document with these events.
trace() {
  local file=$1 IFS=,
  shift
  printf '{"traceEvents":[%s]}\n' "$*" > "$file"
}

catapult=$here/catapult
"$catapult" --setup || exit

outer='{"ph":"X","pid":7,"tid":7,"ts":10.000,"dur":5.000,"name":"outer","cat":"c"}'
inner='{"ph":"X","pid":7,"tid":7,"ts":11.000,"dur":1.250,"name":"inner","cat":"c","args":{"n":3}}'
across='{"ph":"X","pid":7,"tid":7,"ts":14.000,"dur":5.000,"name":"across","cat":"c"}'
counter='{"ph":"C","pid":7,"tid":7,"ts":13.000,"name":"requests","args":{"running":2}}'
flow_start='{"ph":"s","pid":7,"tid":7,"ts":11.500,"id":31,"name":"request","cat":"flow"}'
flow_end='{"ph":"f","pid":8,"tid":8,"ts":21.500,"id":31,"bp":"e","name":"request","cat":"flow"}'
other='{"ph":"X","pid":8,"tid":8,"ts":21.000,"dur":2.000,"name":"other","cat":"c"}'
name='{"ph":"M","pid":7,"tid":7,"name":"process_name","args":{"name":"serve.py"}}'
end='{"ph":"E","pid":7,"tid":7,"ts":12.000,"name":"step","cat":"c"}'

trace "$work/good.json" "$name" "$outer" "$inner" "$counter" "$flow_start" "$other" "$flow_end"
gzip -k "$work/good.json"
trace "$work/torn.json" "$outer" "${inner:0:40}"
trace "$work/overlap.json" "$outer" "$across"
trace "$work/end.json" "$end"
printf '[%s,%s\n' "$outer" "$inner" > "$work/open.json"
printf '%s\n' "$outer" "$inner" > "$work/lines.json"
: > "$work/empty.json"
echo '{"a":1}' > "$work/object.json"
echo 'no trace at all' > "$work/text.json"

for good in good.json good.json.gz; do
  expect 0 '"slices":3,"instants":0,"async":0,"flows":1,"counters":1,"processes":1,"threads":2,"rows":[["serve.py","",2,6250],["","",1,2000]],"warnings":[]' "$catapult" "$work/$good"
done
expect 0 '"slices":2' "$catapult" "$work/open.json"
expect 0 '"slices":2' "$catapult" "$work/overlap.json"
expect 1 'cannot load' "$catapult" "$work/torn.json"
expect 1 'cannot load' "$catapult" "$work/lines.json"
expect 1 'cannot load' "$catapult" "$work/text.json"
expect 1 'cannot load' "$catapult" "$work/absent.json"
expect 1 'the trace holds no event' "$catapult" "$work/empty.json"
expect 1 'the trace holds no event' "$catapult" "$work/object.json"
expect 1 'end.json: ' "$catapult" "$work/end.json"
expect 1 '"slices":3' "$catapult" "$work/torn.json" "$work/good.json"
expect 2 'no trace named' "$catapult"
expect 2 'unknown option' "$catapult" --chek "$work/good.json"
expect 3 'node 18 or newer' env NODE="$work/none" "$catapult" --setup
expect 3 'TPQ_NO_INSTALL' env -u WEB_DIST XDG_CACHE_HOME="$work/cache" TPQ_NO_INSTALL=1 "$catapult" --setup
mkdir -p "$work/dist/v1/assets"
echo 'other code' > "$work/dist/v1/assets/catapult_trace_viewer.js"
expect 3 'expected sha256' env WEB_DIST="$work/dist" "$catapult" --setup

[ "$failed" = 0 ] && echo "selftest: $cases of $cases cases as expected"
exit "$failed"
