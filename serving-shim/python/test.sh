#!/usr/bin/env bash
# test.sh: builds the wheel, installs it into its own virtual environment, and runs the tests against it.
set -euo pipefail

usage() {
  cat << 'TEXT'
usage: test.sh [PYTEST-ARGUMENT...]

Builds the wheel from this checkout, installs it in target/python/venv, compares the stubs with it (stubtest), and runs the tests against it.
Needs Rust and Python 3.10 or later with venv. The first run also needs a network, for pip.

  PYTHON    environment variable: the interpreter, by default python3
  SA_CARGO_PROFILE  environment variable: the cargo profile, by default dist, which released wheels are built with
  WHEEL     environment variable: a wheel to test instead of building one
  NOTEBOOK  environment variable: 1 installs the packages for the notebook example (400 MB) once

Exit 0: passed. 3: the environment cannot be set up here (if CI is set, that counts as a failure). Else: failed.
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

# Installs the packages for the notebook example once, not for each environment. Without them, the test of that example is skipped by name.
# The folder becomes visible only with the final rename, so an interrupted install leaves nothing incomplete.
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

# Uses the environment's setuptools. pip's default, an isolated build, would download it each time.
build() {
  rm -rf "$work/wheel"
  local TIMEFORMAT='-- built in %R s, of CPU time %U s and %S s in the kernel'
  time "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/wheel" "$here"
  WHEEL=$(ls "$work"/wheel/sa_profile-*.whl)
}

# The tests would be meaningless if Python imported the sources next to them.
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
# Three tests at once, because they mostly wait. Tests that measure time may fail under load, so failed tests run again on their own.
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
