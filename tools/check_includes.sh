#!/usr/bin/env bash
# Checks the direction of the includes: each folder may include itself and the folders after it in this order.
# --self-test proves that the check sees a wrong include.
set -euo pipefail

order=(apps server engine models experts kv kernels text checkpoint hub device base)

# check ROOT: prints each include that points the wrong way, then the number of includes looked at; 1 if any is wrong.
check() {
  (cd "$1" && find apps src -type f -regex '.*\.\(h\|cc\|cu\|cuh\)' -print0 | sort -z |
    xargs -0 awk -v order="${order[*]}" '
      BEGIN { n = split(order, names, " "); for (i = 1; i <= n; ++i) rank[names[i]] = i }
      FNR == 1 { split(FILENAME, parts, "/"); folder = parts[1] == "src" ? parts[2] : parts[1] }
      /^[ \t]*#[ \t]*include[ \t]*"/ {
        ++count
        path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
        target = path; sub(/\/.*/, "", target)
        if (path !~ /\//) {
          if (folder == "apps") next
          problem = "names no folder"
        } else if (!(folder in rank)) problem = "is in a folder without a place in the order"
        else if (!(target in rank)) problem = "names a folder without a place in the order"
        else if (rank[target] < rank[folder]) problem = "points backwards: " folder " may not depend on " target
        else next
        print FILENAME ":" FNR ": \"" path "\" " problem
        wrong = 1
      }
      END { print count + 0 " includes looked at"; exit wrong }')
}

self_test() {
  local wrong
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT  # not local: it outlives this function
  mkdir -p "$root/apps" "$root/src/base" "$root/src/text" "$root/src/extra"
  printf '#include "commands.h"\n#include "text/a.h"\n' >"$root/apps/main.cc"
  printf '#include <vector>\n#include "base/b.h"\n#include "text/c.h"\n' >"$root/src/text/a.h"
  printf '// #include "engine/e.h"\n' >"$root/src/base/b.h"
  check "$root" >/dev/null || { echo "self-test: correct includes were refused" >&2; return 1; }
  for wrong in 'base/b.h #include "text/a.h"' 'text/a.cc   #  include "apps/commands.h"' 'text/a.cc #include "c.h"' \
    'text/a.cc #include "unknown/c.h"' 'extra/x.cc #include "base/b.h"'; do
    printf '%s\n' "${wrong#* }" >"$root/src/${wrong%% *}"
    if check "$root" >/dev/null; then
      echo "self-test: was not noticed: src/$wrong" >&2
      return 1
    fi
    printf '\n' >"$root/src/${wrong%% *}"
  done
  echo "self-test: 5 wrong includes were noticed"
}

if [[ ${1:-} == --self-test ]]; then
  self_test
else
  check "$(dirname "${BASH_SOURCE[0]}")/.." || { echo "error: includes point the wrong way; the order is: ${order[*]}" >&2; exit 1; }
fi
