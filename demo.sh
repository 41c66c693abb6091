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

# show ARGUMENT...: the command as one could type it, then what it prints.
show() {
  local shown='sluice run --model models/demo' word
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9.-]+$ ]] || word=${word@Q}
    shown+=" $word"
  done
  say
  say "\$ $shown"
  build/release/bin/sluice run --model models/demo "$@" </dev/null
}

start=$(now_us)
show --chat --prompt 'What does it mean to evaporate?' --temperature 0 --experts
show --chat --prompt 'What is a lawyer?' --temperature 0 --expert-slots 25%
show --chat --prompt 'What does it mean to teach?' --temperature 0
show --prompt 'And the king said' --temperature 0 --max-tokens 40
say
say "Four answers in $(since "$start"). Go on with: build/release/bin/sluice chat --model models/demo"
