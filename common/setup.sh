#!/usr/bin/env bash
# Installs what the build needs and the machine lacks, on Debian 12 or later and Ubuntu 24.04 or later.
#
# What is there already is not touched, wherever it came from: with nothing missing, this changes nothing and
# needs no network. The machine's package sources stay as they are. CUDA is not installed: without it the
# lessons run on the CPU device.
#
#   common/setup.sh         what the programs and their tests need
#   common/setup.sh cpu     the same for the CPU device, on a machine where lessons would run on the GPU
#   common/setup.sh docs    what the site and its tests need
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly repository
readonly minimum_cmake=3.25

say() { echo "setup: $*"; }
fail() {
  echo "setup: $*" >&2
  exit 1
}

case "$*" in
'' | cpu) needs=(compiler cmake ninja addr2line boost_context cli11 json fmt catch2 python) ;;
docs) needs=(compiler cmake ninja doxygen doxygen_awesome matplotlib d3 browser) ;;
*) fail "'$*': is not understood; it must be 'cpu', 'docs' or nothing" ;;
esac
readonly needs purpose=$*

# --- What is usable -----------------------------------------------------------------------------------------

# Where libraries are looked for besides the compiler's own folders: the prefixes that CMake searches too.
prefix_options=()
IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
for prefix in "${prefixes[@]}"; do
  prefix_options+=("-I$prefix/include")
  for folder in "$prefix"/lib "$prefix"/lib64 "$prefix"/lib/*-linux-gnu; do prefix_options+=("-L$folder"); done
done

# Runs the compiler that CMake will take, with the given options, on the C++20 source on standard input.
compiles() { "${CXX:-c++}" -std=c++20 "${prefix_options[@]}" -x c++ - "$@" -o /dev/null >/dev/null 2>&1; }

has_header() { compiles -E <<<"#include <$1>"; }
has_library() { compiles "-l$1" <<<'int main() {}'; }

has_compiler() {
  compiles -E <<'CPP'
#include <vector>
#if defined(__clang__) ? __clang_major__ < 14 : __GNUC__ < 12
#error too old
#endif
CPP
}

has_cmake() {
  command -v cmake >/dev/null || return 1
  local version
  version=$(cmake --version | sed -n 's/^cmake version //p')
  printf '%s\n' "$minimum_cmake" "$version" | sort --version-sort --check=quiet
}

has_ninja() { command -v ninja >/dev/null || command -v ninja-build >/dev/null; }
has_addr2line() { command -v addr2line >/dev/null; }
# The line that says which device will be used, and why.
device() { cmake -P "$repository/common/cmake/Device.cmake" 2>&1 | sed 's/^-- //'; }
# Only the CPU device needs Boost.Context: its threads are fibers.
has_boost_context() {
  { [[ $purpose != cpu ]] && has_cmake && [[ $(device) == 'the lessons will run on the GPU'* ]]; } ||
    { has_header boost/context/fiber.hpp && has_library boost_context; }
}
has_cli11() { has_header CLI/CLI.hpp; }
has_json() { has_header nlohmann/json.hpp; }
has_fmt() { has_header fmt/core.h && has_library fmt; }

has_catch2() {
  compiles -E <<'CPP'
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_version_macros.hpp>
#if CATCH_VERSION_MAJOR * 100 + CATCH_VERSION_MINOR < 303
#error too old
#endif
CPP
}

# Tests of pages, plans, programs and the lab are Python. A python3-minimal has too few modules for them.
has_python() { has_python_module 'concurrent.futures, csv, difflib, json, platform, tempfile, unittest.mock'; }

# The site. Programs of the distribution's own Python, which need not be the first on the PATH.
has_doxygen() { command -v doxygen >/dev/null; }
has_doxygen_awesome() { [[ -e /usr/share/doxygen-awesome-css/doxygen-awesome.css ]]; }
has_python_module() {
  local python
  for python in $(type -ap python3); do "$python" -c "import $1" 2>/dev/null && return; done
  return 1
}
has_matplotlib() { has_python_module matplotlib; }
has_d3() { [[ -e /usr/share/nodejs/d3/dist/d3.min.js ]]; }
# Chromium, driven by Python, opens the site in its tests. Ubuntu has it as a snap only, so there is no test there.
has_browser() {
  { command -v chromedriver >/dev/null && has_python_module selenium; } || [[ $(. /etc/os-release && echo "$ID") != debian ]]
}

# --- What is missing ----------------------------------------------------------------------------------------

# The packages that meet each need. Catch2 and doxygen-awesome-css are left to install_missing: whether there is one
# depends on the system.
readonly -A package_for=(
  [compiler]=g++ [cmake]=cmake [ninja]=ninja-build [addr2line]=binutils
  [boost_context]=libboost-context-dev [cli11]=libcli11-dev [json]=nlohmann-json3-dev [fmt]=libfmt-dev
  [python]=python3
  [doxygen]=doxygen [matplotlib]=python3-matplotlib [d3]=node-d3 [browser]='chromium chromium-driver python3-selenium'
)
missing=()
for need in "${needs[@]}"; do
  "has_$need" || missing+=("$need")
done

# --- Installing it ------------------------------------------------------------------------------------------

apt_get() {
  local as_root=()
  if [[ $EUID != 0 ]]; then as_root=(sudo); fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# The first of the packages $1 that can be installed at version $2 or later; nothing if there is none.
package_at_least() {
  local package candidate
  for package in $1; do
    candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p')
    if [[ -n $candidate && $candidate != '(none)' ]] && dpkg --compare-versions "$candidate" ge "$2"; then
      echo "$package"
      return
    fi
  done
}

# Debian 12 itself has Catch2 2; version 3 is in its backports. They are read through lists and sources of
# their own in a temporary folder, so that nothing else ever comes from there.
install_catch2_from_backports() {
  local folder suite="$VERSION_CODENAME-backports" options
  folder=$(mktemp -d)
  # Readable by apt's own unprivileged user, which does the downloading.
  chmod 755 "$folder"
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  echo "deb http://deb.debian.org/debian $suite main" >"$folder/sources.list"
  options=(-o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache")
  say "installing libcatch2-dev from $suite, through a temporary package source"
  if ! { apt_get "${options[@]}" update && apt_get "${options[@]}" install -y --no-install-recommends libcatch2-dev; }; then
    say "that failed: CMake will download Catch2"
  fi
  # What apt wrote there may belong to root.
  rm -rf "$folder" 2>/dev/null || sudo rm -rf "$folder"
}

install_missing() {
  local VERSION_CODENAME='' PRETTY_NAME='this system'
  # shellcheck source=/dev/null
  [[ -r /etc/os-release ]] && . /etc/os-release
  if ! command -v apt-get >/dev/null; then
    fail "missing: ${missing[*]}; only Debian and Ubuntu are set up automatically, install these by hand"
  fi
  if [[ $EUID != 0 ]] && ! command -v sudo >/dev/null; then
    fail "missing: ${missing[*]}; installing packages needs root, or sudo"
  fi

  say "missing: ${missing[*]}"
  say "reading the package lists"
  apt_get update || say "some package lists could not be read; going on with those there are"

  local packages=() names need catch2='' backports=no
  for need in "${missing[@]}"; do
    if [[ $need == doxygen_awesome ]]; then
      if [[ -n $(package_at_least doxygen-awesome-css 2.1) ]]; then
        packages+=(doxygen-awesome-css)
      else
        say "$PRETTY_NAME has no doxygen-awesome-css: CMake will download it"
      fi
      continue
    fi
    if [[ $need != catch2 ]]; then
      read -ra names <<<"${package_for[$need]}"
      packages+=("${names[@]}")
      continue
    fi
    catch2=$(package_at_least 'libcatch2-dev catch2' 3.3)
    if [[ -n $catch2 ]]; then
      packages+=("$catch2")
    elif [[ $VERSION_CODENAME == bookworm ]]; then
      backports=yes
    else
      say "$PRETTY_NAME has no Catch2 3: CMake will download it"
    fi
  done
  if ((${#packages[@]})); then
    say "installing ${packages[*]}"
    apt_get install -y --no-install-recommends "${packages[@]}"
  fi
  if [[ $backports == yes ]]; then install_catch2_from_backports; fi

  has_compiler || fail "${CXX:-c++} is too old: g++ 12 or clang 14 is needed ($PRETTY_NAME)"
  has_cmake || fail "cmake is older than $minimum_cmake; a newer one is at https://cmake.org/download"
}

if ((${#missing[@]})); then
  install_missing
else
  say "everything needed is here"
fi

if [[ -z $purpose ]]; then say "$(device)"; fi
