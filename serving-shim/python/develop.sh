#!/usr/bin/env bash
# Builds the extension into the source tree, where PYTHONPATH=serving-shim/python finds it. For development only; users install with pip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=${CARGO_TARGET_DIR:-../../target}
cargo build --profile dist -p sa-profile-python "$@"
cp "$target/dist/lib_sa_profile.so" sa_profile/_sa_profile.abi3.so.new
mv sa_profile/_sa_profile.abi3.so.new sa_profile/_sa_profile.abi3.so # a process may have the old one mapped
