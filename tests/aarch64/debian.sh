# Sourced by debian-python and debian-rustc, which fetch packages of Debian into a folder of their own. Nothing is installed: apt's lists and the packages' files stay there.

cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sa-profile-aarch64

# Unpacks the packages that the caller's `needed` prints into the folder $1. Chained, for `set -e` does not hold in a condition.
unpack() {
  local lists=$1.lists debs=$1.debs packages
  rm -rf "$debs" "$1" &&
    mkdir -p "$lists/partial" "$1.apt/archives/partial" "$debs" "$1" &&
    timeout 200 apt-get "${options[@]}" -qq update &&
    packages=$(needed) &&
    (cd "$debs" && timeout 400 apt-get "${options[@]}" -qq download $packages) &&
    for package in "$debs"/*.deb; do dpkg -x "$package" "$1" || return; done &&
    rm -rf "$debs" "$lists" "$1.apt"
}

# fetch NAME OPTION...: prints the folder of that name, which it makes if it is not there, with these options of apt. The caller's `works FOLDER` tries what is in it.
# Exit 3: it cannot be had here.
fetch() {
  local folder=$cache/$1 new=$cache/$1-new log=$cache/$1.log
  options=(-o "Dir::State::lists=$new.lists" -o "Dir::Cache=$new.apt" -o Debug::NoLocking=1 -o APT::Sandbox::User= "${@:2}")
  if [ ! -d "$folder" ]; then
    command -v apt-get > /dev/null && command -v dpkg > /dev/null && command -v flock > /dev/null || exit 3
    mkdir -p "$cache"
    (
      flock 9
      [ -d "$folder" ] && exit 0
      unpack "$new" > "$log" 2>&1 || { tail -n 5 "$log" >&2; exit 3; }
      works "$new" && mv "$new" "$folder" || exit 3
    ) 9>> "$cache/lock"
  fi
  echo "$folder"
}
