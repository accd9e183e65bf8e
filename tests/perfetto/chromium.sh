# Sourced after setup.sh by scripts that need a browser. Finds Chromium, or installs it with --setup as root on Debian. Sets $CHROMIUM, or exits the caller with 3.

find_chromium() {
  [ -n "${CHROMIUM:-}" ] || CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
  command -v "$CHROMIUM" > /dev/null
}

# Installs Debian's package if that is possible.
install_chromium() {
  local log=$cache/chromium.log
  command -v apt-get > /dev/null && [ "$(id -u)" = 0 ] || return
  mkdir -p "$cache" && {
    timeout 120 apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive timeout 400 apt-get install -y -qq --no-install-recommends chromium
  } > "$log" 2>&1 < /dev/null || { tail -n 5 "$log" >&2; return 1; }
}

# Tests the browser. A Chromium that cannot run here (missing libraries, too little memory, a surrounding sandbox) counts as missing.
starts() {
  local profile rc=0
  profile=$(mktemp -d)
  timeout -k 5 60 "$CHROMIUM" --headless --disable-gpu --no-sandbox --no-first-run --disable-background-networking --disable-dev-shm-usage \
    --user-data-dir="$profile" --dump-dom about:blank > /dev/null 2>&1 < /dev/null || rc=$?
  rm -rf "$profile"
  return "$rc"
}

need_chromium() {
  if ! find_chromium; then
    [ "${1:-}" = --setup ] && [ -z "${CHROMIUM:-}" ] && install_chromium && find_chromium ||
      unavailable "Chromium is needed (Debian's package chromium, or its program in CHROMIUM)"
  fi
  export CHROMIUM
  starts || unavailable "$CHROMIUM does not start here"
}
