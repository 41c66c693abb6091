#!/usr/bin/env bash
# Builds the program where that was not done yet, and lets the model of models/demo answer a few questions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source tools/setup.sh

case ${1:-} in
  '') ;;
  --no-install) install=no ;;
  *) fail "usage: ./demo.sh [--no-install]" ;;
esac

build_program release

ask() {
  local prompt=$1
  shift
  say
  say "\$ sluice run --model models/demo --chat --prompt '$prompt' $*"
  build/release/bin/sluice run --model models/demo --chat --prompt "$prompt" "$@" </dev/null
}

start=$(now_us)
ask 'What does it mean to evaporate?' --temperature 0
ask 'What is a violin?' --temperature 0
say
say "Three answers in $(since "$start"). More: build/release/bin/sluice chat --model models/demo"
