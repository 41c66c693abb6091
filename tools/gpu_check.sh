#!/usr/bin/env bash
# Builds the CUDA preset and runs what needs a GPU: tools/gpu_check.sh [--no-build]. With compute-sanitizer where it is
# installed, on the tests of single kernels. Prints the machine first, so that its output can stand in docs/results/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

tests=build/cuda/bin/sluice_gpu_tests
if [[ ${1:-} != --no-build ]]; then
  configure cuda SLUICE_TESTS=ON
  build_targets cuda sluice sluice_gpu_tests
fi
[[ -x $tests ]] || fail "$tests is not there: run tools/gpu_check.sh without --no-build"

say "commit $(git -c safe.directory='*' describe --always --dirty 2>/dev/null || echo unknown), $(date -u '+%Y-%m-%d %H:%M') UTC"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
"$tests"
if command -v compute-sanitizer >/dev/null; then
  # One shape of each kernel: the checker makes them a hundred times slower. Its racecheck does not come to an end with
  # blocks of 1024 threads.
  say "=== compute-sanitizer memcheck"
  compute-sanitizer --tool memcheck --error-exitcode 1 "$tests" --gtest_brief=1 \
    --gtest_filter='*CudaKernel*:*CudaFormat*:*OneLayer*:*AllResident*'
else
  say "compute-sanitizer is not installed: its check was not run"
fi
