#!/usr/bin/env bash
# test.sh: builds the wheel, installs it into a virtual environment of its own, and tests what is installed.
set -euo pipefail

usage() {
  cat << 'TEXT'
usage: test.sh [PYTEST-ARGUMENT...]

Builds the wheel from this checkout, installs it in target/python/venv, compares the stubs with it (stubtest), and runs the tests against it.
Needs Rust, Python 3.10 or later with venv, and once a network, for pip.

  PYTHON    in the environment: the interpreter, by default python3
  SA_CARGO_PROFILE  in the environment: what is built, by default dist, as wheels for others are
  WHEEL     in the environment: a wheel to test instead of one built here
  NOTEBOOK  in the environment: 1 installs the packages for the example of notebooks (400 MB), once

Exit 0: passed. 3: an environment cannot be set up here (not where CI is set: there that is a failure). Else: failed.
TEXT
}

case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
esac

export SA_CARGO_PROFILE=${SA_CARGO_PROFILE:-dist}
for name in ${!SA_PROFILE_@}; do unset "$name"; done
unset LD_PRELOAD PYTHONPATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/python
venv=$work/venv

unavailable() {
  echo "python tests: unavailable: $*" >&2
  [ -z "${CI:-}" ] || exit 1
  exit 3
}

setup() {
  mkdir -p "$work"
  "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || unavailable 'Python 3.10 or later is needed'
  "${PYTHON:-python3}" -m venv --clear "$venv" > "$work/setup.log" 2>&1 || unavailable "no virtual environment: $(tail -n 1 "$work/setup.log")"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-test.txt" > "$work/setup.log" 2>&1 ||
    unavailable "pip: $(tail -n 1 "$work/setup.log")"
}

# Packages for the notebook example, installed once and not for each environment. Without them the test of the example is skipped by name.
# Only the last rename makes the folder visible, so that a killed install leaves nothing half done.
notebook_packages() {
  local requirements=$here/requirements-notebook.txt tag site folder
  tag=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
  folder=$work/notebook-$tag-$(cksum < "$requirements" | cut -d ' ' -f 1)
  if [ ! -d "$folder" ]; then
    [ -n "${NOTEBOOK:-}" ] || return 0
    rm -rf "$work"/notebook-"$tag"-*
    "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --target "$folder.new" -r "$requirements" > "$work/notebook.log" 2>&1 &&
      mv "$folder.new" "$folder" || { echo "-- no packages for the example of notebooks: $(tail -n 1 "$work/notebook.log")" >&2; return 0; }
  fi
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$folder" > "$site/notebook-packages.pth"
}

# With the setuptools of the environment: pip's own, isolated way fetches it each time.
build() {
  rm -rf "$work/wheel"
  local TIMEFORMAT='-- built in %R s, of CPU time %U s and %S s in the kernel'
  time "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/wheel" "$here"
  WHEEL=$(ls "$work"/wheel/sa_profile-*.whl)
}

# A test of the sources beside it would say nothing of the wheel.
is_installed() {
  (cd / && "$venv/bin/python" -c 'import sa_profile; print(sa_profile.__file__)') | grep -qF "$venv/"
}

setup
[ -n "${WHEEL:-}" ] || build
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$WHEEL"
notebook_packages
is_installed || { echo 'test.sh: the package that Python finds is not the installed one' >&2; exit 1; }
echo "-- $WHEEL in $("$venv/bin/python" --version)"
cd "$here"
# Three at once, for they wait most of the time. Those that measure time may fail beside others: what failed runs once more, alone.
tests() {
  local rc=0
  "$venv/bin/pytest" -n 3 "$@" || rc=$?
  [ "$rc" = 1 ] || return "$rc"
  echo '-- what failed, alone'
  "$venv/bin/pytest" --last-failed --last-failed-no-failures none "$@"
}

rc=0
(cd "$work" && "$venv/bin/python" -m mypy.stubtest sa_profile --mypy-config-file "$here/pyproject.toml" --allowlist "$here/tests/stubtest-allow.txt") || rc=1
tests "$@" || rc=1
exit "$rc"
