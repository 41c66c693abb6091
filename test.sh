#!/usr/bin/env bash
# Builds everything and runs the quick tests. Arguments go to ctest: ./test.sh -R SlotMap
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source tools/setup.sh

if [[ ${1:-} == --no-install ]]; then
  install=no
  shift
fi
build_with_tests release all

# Some tests read data that is not part of the repository.
if [[ -d ../shared/goldens ]]; then
  shared=$(ctest --test-dir build/release -N -L '_shared$' | sed -n 's/^Total Tests: //p')
  say "$shared tests read ../shared"
  if [[ ${CI:-} == true ]] && ((${shared:-0} == 0)); then
    fail "../shared is there, and not one test is registered that reads it"
  fi
else
  say "$(cat tests/*/CMakeLists.txt | grep -c NEEDS_SHARED) test programs are not registered because ../shared is absent"
fi

start=$(now_us)
say "Running the quick tests"
status=0
ctest --preset release -j "$(cores)" "$@" </dev/null || status=$?
if ((status)); then fail "tests failed (after $(since "$start"))"; fi
say "  tested in $(since "$start")"
