#!/usr/bin/env bash
# The slower proofs, all or those named: tools/check_all.sh [PART...]. Writes docs/results/checks.md; parts that were not run
# keep their line there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

# name | what it proves | command
parts=(
  "demo|./demo.sh answers, and starts at once when run again|demo"
  "debug|quick tests, unoptimised|quick_tests debug"
  "asan|quick tests under clang's AddressSanitizer and UndefinedBehaviorSanitizer|quick_tests asan"
  "tsan|quick tests under clang's ThreadSanitizer|quick_tests tsan"
  "fuzz|60 s of made-up files for each reader of files, under clang's sanitizers|fuzz"
  "long|tests too long for each change|long_tests"
  "fresh|a minimal Debian 12 builds, tests and shows it|tools/fresh_machine.sh"
  "fresh-ci|a minimal Debian 12 passes .ci/run|tools/fresh_machine.sh --ci"
)
table=docs/results/checks.md

demo() {
  ./demo.sh
  local start
  start=$(now_us)
  ./demo.sh
  (($(now_us) - start < 5000000)) || fail "the demo's second run took $(since "$start")"
}

quick_tests() {
  build_with_tests "$1" all
  ctest --preset "$1" -j "$(cores)"
}

long_tests() {
  build_with_tests release all
  ctest --test-dir build/release -L '^long$' --no-tests=error --output-on-failure -j "$(cores)"
}

# Programs of tests/fuzz; what they find is left in build/fuzz/found.
fuzz() {
  local seeds name status=0
  build_fuzz_targets
  mkdir -p build/fuzz/found
  for seeds in tests/fuzz/seeds/*; do
    name=${seeds##*/}
    mkdir -p "build/fuzz/inputs/$name"
    "build/fuzz/tests/fuzz_$name" -max_total_time=60 -timeout=20 -rss_limit_mb=4000 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/inputs/$name" "$seeds" || status=1
  done
  return "$status"
}

build_fuzz_targets() {
  local names=(tests/fuzz/seeds/*)
  need_packages "the fuzz targets" "${packages_program[@]}" "${packages_tests[@]}" "${packages_clang[@]}"
  configure fuzz SLUICE_TESTS=ON
  build_targets fuzz "${names[@]/#*\//fuzz_}"
}

commit() {
  local id
  id=$(git -c safe.directory='*' rev-parse --short HEAD)
  if [[ -n $(git -c safe.directory='*' status --porcelain -- . ":!$table*") ]]; then id+=" with changes"; fi
  printf '%s' "$id"
}

# record NAME WHAT RESULT DURATION: replaces the part's line in the table.
record() {
  local rest
  rest=$(sed -n '/^| [a-z]/p' "$table" 2>/dev/null | grep -v -e "^| $1 |" -e '^| part |' || true)
  mkdir -p "$(dirname "$table")"
  {
    printf '# Results of tools/check_all.sh\n\nWritten by the script; each line is the last run of that part.\n\n'
    printf '| part | what it proves | result | duration | commit | date (UTC) |\n|---|---|---|---|---|---|\n'
    {
      [[ -z $rest ]] || printf '%s\n' "$rest"
      printf '| %s | %s | %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4" "$(commit)" "$(date -u '+%Y-%m-%d %H:%M')"
    } | sort
  } >"$table.new"
  mv "$table.new" "$table"
}

wanted=" $* "
for name in "$@"; do
  printf '%s\n' "${parts[@]}" | grep -q "^$name|" || fail "there is no part $name: ${parts[*]%%|*}"
done

mkdir -p build/checks
failed=()
for part in "${parts[@]}"; do
  IFS='|' read -r name what command <<<"$part"
  [[ $wanted == "  " || $wanted == *" $name "* ]] || continue
  say "=== $name: $what (log: build/checks/$name.log)"
  start=$(now_us)
  status=0
  set +e  # inside `if`, bash would go on after a failed command of a function
  (set -e; $command) >"build/checks/$name.log" 2>&1 </dev/null
  status=$?
  set -e
  took=$(since "$start")
  if ((status)); then
    tail -n 15 "build/checks/$name.log"
    failed+=("$name")
  fi
  result=$( ((status)) && say FAILED || say passed)
  say "=== $name $result in $took"
  record "$name" "$what" "$result" "$took"
done

sed -n '/^|/p' "$table"
((${#failed[@]} == 0)) || fail "failed: ${failed[*]}"
