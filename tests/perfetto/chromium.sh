# Sourced after setup.sh by what needs a browser: finds Chromium, which it installs with --setup as root on Debian. Leaves $CHROMIUM, or ends the caller with 3.

find_chromium() {
  [ -n "${CHROMIUM:-}" ] || CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
  command -v "$CHROMIUM" > /dev/null
}

# Debian's package, where this is allowed to install it.
install_chromium() {
  local log=$cache/chromium.log
  command -v apt-get > /dev/null && [ "$(id -u)" = 0 ] || return
  mkdir -p "$cache" && {
    timeout 120 apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive timeout 400 apt-get install -y -qq --no-install-recommends chromium
  } > "$log" 2>&1 < /dev/null || { tail -n 5 "$log" >&2; return 1; }
}

# A Chromium that cannot run here (no libraries, no memory, a sandbox around us) is none.
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
