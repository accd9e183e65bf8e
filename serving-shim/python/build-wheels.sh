#!/usr/bin/env bash
# build-wheels.sh: builds wheels for x86-64 and aarch64 machines with glibc 2.28 or later, on any machine.
set -euo pipefail

usage() {
  cat << 'TEXT'
usage: build-wheels.sh [x86_64|aarch64]...

Builds manylinux_2_28 wheels into target/python/wheels, by default for both architectures. auditwheel checks that they need no newer glibc and no other library.
SHA256SUMS next to them contains their checksums. Copy a wheel to a server and install it there: pip install WHEEL. That needs neither Rust nor a network.
Needs Rust and Python 3.10 or later with venv, and a network for the first run. If the toolchain lacks an architecture's standard library, it uses Debian's rustc (tests/aarch64/debian-rustc).

Exit 0: built. 3: no compiler is available for an architecture. Else: failed.
TEXT
}

case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
esac

glibc=2.28
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")
work=$target/python
venv=$work/wheels-venv
platform=manylinux_${glibc/./_}

setup() {
  mkdir -p "$work/wheels"
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-wheels.txt"
}

# Uses the toolchain's rustc if it has the target, and otherwise Debian's, which has a standard library for aarch64 too.
find_rustc() {
  if ls "$(rustc --print target-libdir --target "$1-unknown-linux-gnu")"/libstd-*.rlib > /dev/null 2>&1; then
    return
  fi
  local rust
  rust=$("$here/../../tests/aarch64/debian-rustc") || {
    echo "build-wheels.sh: unavailable: no standard library for $1: rustup target add $1-unknown-linux-gnu" >&2
    exit 3
  }
  export RUSTC=$rust/usr/bin/rustc LD_LIBRARY_PATH=$rust/usr/lib/x86_64-linux-gnu
}

# build ARCHITECTURE: runs in a subshell because it exports variables.
build() (
  find_rustc "$1"
  raw=$work/raw-$1
  rm -rf "$raw"
  # A target name that other builds do not use, so that the strip option here does not make cargo rebuild theirs.
  export CARGO_TARGET_DIR=$target CARGO_PROFILE_DIST_STRIP=debuginfo STRIP=''
  export SA_CARGO_PROFILE=dist SA_CARGO_BUILD=zigbuild CARGO_BUILD_TARGET=$1-unknown-linux-gnu.$glibc
  export _PYTHON_HOST_PLATFORM=linux-$1 # part of the wheel's name
  PATH=$venv/bin:$PATH "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$raw" "$here"
  rm -f "$work/wheels"/sa_profile-*"$1".whl
  # auditwheel derives the platform from what the wheel's programs need: the oldest glibc, and only libraries that every machine has.
  PATH=$venv/bin:$PATH "$venv/bin/auditwheel" repair --plat auto --only-plat --wheel-dir "$work/wheels" "$raw"/sa_profile-*.whl
  ls "$work/wheels"/sa_profile-*-"${platform}_$1".whl > /dev/null || {
    echo "build-wheels.sh: expected a wheel for ${platform}_$1, found $(ls "$work/wheels")" >&2
    exit 1
  }
)

setup
[ $# != 0 ] || set -- x86_64 aarch64
for architecture; do build "$architecture"; done
(cd "$work/wheels" && sha256sum sa_profile-*.whl | tee SHA256SUMS)
