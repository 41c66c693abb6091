#!/usr/bin/env bash
# compare.sh PROGRAM CHECKPOINT: runs `sluice eval` on a golden's inputs and compares logits, experts and greedy text.
set -euo pipefail
program=$1 checkpoint=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$root/tools/golden.py" ids "$checkpoint/golden.safetensors" >"$folder/ids.json"
for cut in "" "--chunk 7" "--decode-from 5" "--expert-slots 25%"; do
  # shellcheck disable=SC2086  # words of $cut are arguments
  "$program" eval --model "$checkpoint" --ids "$folder/ids.json" --logits "$folder/out.safetensors" --greedy 24 --compute f32 $cut
  python3 "$root/tools/golden.py" compare "$checkpoint/golden.safetensors" "$folder/out.safetensors" 1e-3
  sum=$(cksum <"$folder/out.safetensors")
  [ "${first:=$sum}" = "$sum" ] || { echo "eval $cut: the output differs from the uncut run's"; exit 1; }
done
