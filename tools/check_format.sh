#!/usr/bin/env bash
# Checks that clang-format would change no source file. --fix lets it change them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

program=$(command -v clang-format-14 || command -v clang-format) || fail "clang-format is not there"
mapfile -t -d '' files < <(find apps src tests -type f -regex '.*\.\(h\|cc\|cu\|cuh\)' -print0 | sort -z)
((${#files[@]})) || fail "no source files found"

if [[ ${1:-} == --fix ]]; then
  "$program" -i "${files[@]}"
  exit
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(cores)" sh -c '
  found=$("$0" --dry-run -Werror --style=file "$1" 2>&1) && exit
  echo "$found" | grep ": error:" | head -n 1
  exit 1' "$program" || fail "these files are not formatted (the first place of each is shown); tools/check_format.sh --fix
changes them, here with $("$program" --version)"
say "${#files[@]} files are formatted"
