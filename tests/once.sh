# Functions for scripts that install something when it is first needed. Source this file.

unavailable() {
  echo "${0##*/}: unavailable: $*" >&2
  exit 3
}

# once FOLDER COMMAND...: creates FOLDER if it is missing. The command gets the name of a temporary folder as argument, which is renamed to FOLDER at the end, so that a killed
# installation leaves nothing incomplete. Parallel first calls install once. If the installation fails, the caller exits with 3. `set -e` does not apply within a condition, so a
# command with several steps must chain them with `&&`.
once() {
  local folder=$1 cache=${1%/*}
  [ ! -d "$folder" ] || return 0
  command -v flock > /dev/null || unavailable 'flock (util-linux) is needed'
  mkdir -p "$cache" 2> /dev/null && : 2> /dev/null 9>> "$cache/lock" || unavailable "cannot write to $cache"
  if ! (flock 9 && { [ -d "$folder" ] || { rm -rf "$folder.new" && "${@:2}" "$folder.new" && mv "$folder.new" "$folder"; } > "$folder.log" 2>&1; }) 9>> "$cache/lock"; then
    tail -n 5 "$folder.log" >&2 || true
    unavailable "installing ${folder##*/} failed (all of it: $folder.log)"
  fi
}
