#!/usr/bin/env bash
# test-aarch64.sh: runs the tests of the aarch64 wheel that build-wheels.sh built, in qemu's user mode, with Debian's Python for arm64.
set -euo pipefail

case "${1:-}" in
  -h | --help)
    echo 'usage: test-aarch64.sh [PYTEST-ARGUMENT...]     exit 3: qemu or a Python for arm64 is not available here'
    exit 0
    ;;
esac

for name in ${!SA_PROFILE_@}; do unset "$name"; done
unset LD_PRELOAD PYTHONPATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
aarch64=$here/../../tests/aarch64
work=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/python
wheel=$(ls "$work"/wheels/sa_profile-*aarch64.whl) || { echo 'test-aarch64.sh: no wheel: build-wheels.sh aarch64' >&2; exit 1; }
venv=$work/aarch64-venv

# The tests need only pure Python packages, so this machine's pip can download them. The emulated pip would take minutes.
fetch() {
  "$work/wheels-venv/bin/pip" download --quiet --disable-pip-version-check --dest "$work/aarch64-packages" \
    pip "$(grep '^pytest==' "$here/requirements-test.txt")"
}

setup() {
  rm -rf "$venv"
  "$aarch64/namespace" "$python/usr/bin/python3" -m venv --without-pip "$venv"
  "$aarch64/namespace" "$venv/bin/python" "$(ls "$work"/aarch64-packages/pip-*.whl | tail -n 1)/pip" install --quiet \
    --disable-pip-version-check --no-index --find-links "$work/aarch64-packages" pytest "$wheel"
}

# Tests in which one process uses a start time to check whether another one is alive. qemu makes up a program's own start time, and gives a child that of its parent.
start_times=(
  dropin/test_processes.py
  'native/test_notebook.py::test_a_program_finds[children_of_a_block_belong_to_it'
  native/test_off.py::test_spans_of_a_paused_process_have_args_once_it_is_on
  native/test_open_span.py::test_a_span_that_ends_while_recording_is_off_is_complete_and_marked
  native/test_open_span.py::test_spans_of_one_object_survive_being_switched_within
  native/test_processes.py
  package/test_commands.py
  package/test_main.py::test_it_knows_the_run_it_would_join_and_that_it_was_switched_off
  vllm/test_vllm_engine.py::test_a_paused_engine_records_nothing_and_can_be_switched_on
  vllm/test_vllm_plugin.py::test_start_and_stop_profile_switch_a_paused_run
)
# It starts Python without the variable that tells qemu where its libraries are.
namespace=(package/test_visible_text.py::test_the_configuration_reverses_no_line)
# The sampling thread needs a kernel with restartable sequences.
sampled=(startup)
not_in_qemu=("${start_times[@]}" "${namespace[@]}" "${sampled[@]}")

python=$("$aarch64/debian-python") || { echo 'python for arm64: unavailable' >&2; exit 3; }
export QEMU_LD_PREFIX=$python
"$aarch64/namespace" true
fetch
setup
cd "$here"
echo "-- $(basename "$wheel") in $("$aarch64/namespace" "$venv/bin/python" -c 'import platform; print(platform.machine(), platform.python_version())')"
"$aarch64/namespace" "$venv/bin/pytest" -p no:cacheprovider "${not_in_qemu[@]/#/--deselect=tests/}" "$@"
printf 'SKIPPED in qemu, which makes up start times of processes: %s\n' "${start_times[@]}"
printf 'SKIPPED in qemu, which has no restartable sequences, so that nothing is sampled: %s\n' "${sampled[@]}"
printf 'SKIPPED in qemu, which runs in a user namespace and needs variables of its own: %s\n' "${namespace[@]}"
