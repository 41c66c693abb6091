#!/usr/bin/env bash
# Builds the program: build/PRESET/bin/sluice. Installs the Debian packages that this needs and that are missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source tools/setup.sh

usage="usage: ./build.sh [preset] [--tests] [--no-install]
  preset        release (default), debug, asan, tsan: see CMakePresets.json
  --tests       build the test programs too
  --no-install  ask nothing of the package manager: build with what is there
SLUICE_WERROR=1 in the environment makes warnings errors."

preset=release
tests=no
while (($#)); do
  case $1 in
    --tests) tests=yes ;;
    --no-install) install=no ;;
    -h | --help) say "$usage" && exit ;;
    -*) fail "unknown option $1
$usage" ;;
    *) preset=$1 ;;
  esac
  shift
done

if [[ $tests == yes ]]; then
  build_with_tests "$preset" all
else
  build_program "$preset"
fi
say "The program is build/$preset/bin/sluice"
