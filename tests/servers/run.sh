# Installs one version of an engine with a small model and the wheel of sa_profile, and runs the engine's cases. tests/vllm/run and tests/sglang/run source this file.
#
# The script sets:
#   engine     name of the engine, of its folder in tests/ and of its cache in target/
#   package    name of its package in the Python registry
#   left_out   names of required packages that a server on the CPU does not need
# and defines:
#   usage                 prints the help
#   select_python         sets $python, or calls `unavailable`
#   complete_environment  changes the installed environment in $venv as this engine needs it
#   with_engine COMMAND   runs a command in an environment in which the engine starts

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/$engine
servers=$root/tests/servers
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
cache_variable=SA_PROFILE_${engine^^}_CACHE
cache=$(realpath -m "${!cache_variable:-$target/$engine}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
exec 3>&2

unavailable() {
  echo "$engine: unavailable: $*" >&2
  exit 3
}

# Reports the failure of a script of ours. This is an error, and does not mean that the engine is unavailable.
broken() {
  tail -n 5 "$scratch/pip.log" >&3
  echo "$engine: $1 of tests/ failed" >&3
  exit 1
}

# Installs the engine in $venv.
environment() {
  local pip=(-m pip install --quiet --disable-pip-version-check)
  [ "$version" != "$(cat "$venv/ready" 2> /dev/null)" ] || return 0
  rm -rf "$venv"
  "$python" -m venv "$venv" &&
    "$venv/bin/python" "${pip[@]}" uv &&
    "$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$scratch" "$package==$version" || return 1
  local wheel=("$scratch"/*-"$version"-*.whl)
  # shellcheck disable=SC2086 # a list of words
  "$venv/bin/python" "$servers/requirements.py" "${wheel[0]}" $left_out > "$scratch/requirements.txt" || broken servers/requirements.py
  VIRTUAL_ENV=$venv "$venv/bin/uv" pip install --quiet -r "$scratch/requirements.txt" &&
    VIRTUAL_ENV=$venv "$venv/bin/uv" pip install --quiet --no-deps "${wheel[0]}" || return 1
  complete_environment || return 1
  echo "$version" > "$venv/ready"
}

# Installs the wheel of sa_profile. It is installed again every time.
package_wheel() {
  local wheel=${WHEEL:-}
  if [ -z "$wheel" ]; then
    "$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$scratch/wheel" "$root/serving-shim/python"
    wheel=$(compgen -G "$scratch/wheel/sa_profile-*.whl")
  fi
  VIRTUAL_ENV=$venv "$venv/bin/uv" pip install --quiet --no-deps --reinstall "$wheel"
}

setup=''
case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
  --setup)
    setup=1
    shift
    ;;
  -*)
    usage >&2
    exit 2
    ;;
esac

# shellcheck disable=SC2034 # some engines need libraries
read -r version libraries < <(grep -v '^#' "$here/versions" | { if [ $# = 0 ]; then cat; else awk -v version="$1" '$1 == version'; fi; }) ||
  { echo "$engine: $1 is not in $here/versions" >&2; exit 2; }
[ "$(uname -sm)" = 'Linux x86_64' ] || unavailable 'its wheels are for Linux on x86-64'
select_python

export PYTHONDONTWRITEBYTECODE=1
venv=$cache/$version/venv
model=$cache/$version/model
mkdir -p "$cache/$version"
environment > "$scratch/pip.log" 2>&1 || { tail -n 5 "$scratch/pip.log" >&2; unavailable "$package $version cannot be installed for $("$python" --version)"; }
with_engine true
"$venv/bin/python" "$servers/model.py" "$model"
[ -z "$setup" ] || exit 0

package_wheel
cargo build --quiet --manifest-path "$root/Cargo.toml" -p sa-profile -p trace-merge
echo "$engine: $package $version"
unset PYTHONDONTWRITEBYTECODE # the servers start faster with cached bytecode
with_engine "$venv/bin/python" "$here/cases" --model "$model" --bin "$target/debug" "${@:2}"
