#!/usr/bin/env bash
# Installs libsa_profile, its header and its pkg-config file.
set -euo pipefail

usage() {
  cat << 'TEXT'
usage: install.sh PREFIX [BUILD]

Copies into PREFIX: lib/libsa_profile.so.VERSION with its links, lib/libsa_profile.a, include/sa_profile.h, lib/pkgconfig/sa_profile.pc.
BUILD is the folder of libsa_profile.so and libsa_profile.a. By default it is target/dist, into which `cargo build --profile dist -p sa-profile-capi` builds them.

Environment variables:
  LIBDIR    folder for the libraries instead of PREFIX/lib
  DESTDIR   prefix for every path that is written, for building packages

Exit status: 0 if installed, 1 if a file is missing or cannot be written, 2 on bad usage.
TEXT
}

case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
  '' | -*)
    usage >&2
    exit 2
    ;;
esac
[ $# -le 2 ] || { usage >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=$(realpath -m -- "$1")
build=${2:-${CARGO_TARGET_DIR:-$here/../../target}/dist}
libdir=$(realpath -m -- "${LIBDIR:-$prefix/lib}")
includedir=$prefix/include
version=$(sed -n 's/^#define SA_PROFILE_VERSION "\(.*\)"$/\1/p' "$here/include/sa_profile.h")
soname=libsa_profile.so.0 # the same as in build.rs
destdir=${DESTDIR:-}

for file in "$build/libsa_profile.so" "$build/libsa_profile.a"; do
  [ -f "$file" ] || { echo "install.sh: no $file: cargo build --profile dist -p sa-profile-capi" >&2; exit 1; }
done

# Escapes a text for the replacement part of sed's s|||.
quoted() { printf '%s' "$1" | sed 's/[\\&|]/\\&/g'; }

install -d "$destdir$libdir/pkgconfig" "$destdir$includedir"
install -m 755 "$build/libsa_profile.so" "$destdir$libdir/libsa_profile.so.$version"
ln -sf "libsa_profile.so.$version" "$destdir$libdir/$soname"
ln -sf "$soname" "$destdir$libdir/libsa_profile.so"
install -m 644 "$build/libsa_profile.a" "$destdir$libdir/libsa_profile.a"
install -m 644 "$here/include/sa_profile.h" "$destdir$includedir/sa_profile.h"
sed -e "s|@prefix@|$(quoted "$prefix")|" -e "s|@libdir@|$(quoted "$libdir")|" -e "s|@includedir@|$(quoted "$includedir")|" \
  -e "s|@version@|$version|" -e 's|@static_libs@|-Wl,--exclude-libs,libsa_profile.a -Wl,-z,nodelete -lgcc_s -lutil -lrt -lpthread -lm -ldl|' \
  "$here/sa_profile.pc.in" > "$destdir$libdir/pkgconfig/sa_profile.pc"
[ -n "$destdir" ] || echo "installed; now run ldconfig as root, or link with -Wl,-rpath,$libdir"
