# Sourced by debian-python and debian-rustc, which download Debian packages into a separate folder. Nothing is installed: apt's lists and the packages' files stay in that folder.

. "$(dirname "${BASH_SOURCE[0]}")/../once.sh"
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sa-profile-aarch64

# unpack FOLDER: unpacks the packages that the caller's `needed` prints. The caller's `works FOLDER` then tests the contents.
unpack() {
  local lists=$1.lists debs=$1.debs packages
  rm -rf "$debs" &&
    mkdir -p "$lists/partial" "$1.apt/archives/partial" "$debs" "$1" &&
    timeout 200 apt-get "${options[@]}" -qq update &&
    packages=$(needed) &&
    (cd "$debs" && timeout 400 apt-get "${options[@]}" -qq download $packages) &&
    for package in "$debs"/*.deb; do dpkg -x "$package" "$1" || return; done &&
    rm -rf "$debs" "$lists" "$1.apt" &&
    works "$1"
}

# fetch NAME OPTION...: prints the folder of that name, after creating it with these apt options if it is missing. Exit 3: not available here.
fetch() {
  local folder=$cache/$1
  options=(-o "Dir::State::lists=$folder.new.lists" -o "Dir::Cache=$folder.new.apt" -o Debug::NoLocking=1 -o APT::Sandbox::User= "${@:2}")
  [ -d "$folder" ] || { command -v apt-get > /dev/null && command -v dpkg > /dev/null ; } || unavailable 'apt-get and dpkg are needed'
  once "$folder" unpack
  echo "$folder"
}
