#!/usr/bin/env bash
# Builds, tests and measures the lessons as owners of other GPUs get them, on the GPU that is here: as PTX for an older
# architecture, which the driver compiles. What this cannot show is how other GPUs' memory and clocks behave.
#
#   common/results/record_architectures.sh [RESULTS_FOLDER [ARCHITECTURE...]]
#                                       (default: docs/results, 75-virtual 80-virtual 90-virtual 90a-real)
#
# For each architecture it writes RESULTS_FOLDER/architectures/DATE-GPU-ARCHITECTURE.json, a climb, and ...txt: how the whole
# test suite ended, and which tests were skipped. A build folder build-ARCHITECTURE that is there is used as it is.
# Exits with 1 if a test failed anywhere.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
results=${1:-$repository/docs/results}/architectures
architectures=("${@:2}")
((${#architectures[@]})) || architectures=(75-virtual 80-virtual 90-virtual 90a-real)
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
name=$(date -u +%F)-$(tr '[:upper:]' '[:lower:]' <<<"${gpu##* }") # "NVIDIA H200" becomes h200
mkdir -p "$results"
cd "$repository"

failed=0
for architecture in "${architectures[@]}"; do
  folder=build-$architecture file=$results/$name-$architecture
  if [[ ! -x $folder/bin/ladder ]]; then
    cmake --preset gpu -B "$folder" -DCMAKE_CUDA_ARCHITECTURES="$architecture"
    cmake --build "$folder"
  fi
  log=$(mktemp)
  ctest --test-dir "$folder" --output-on-failure >"$log" || failed=1
  sed -n '/tests passed/,$p' "$log" | tee "$file.txt"
  rm "$log"
  LADDER_TUNED=no "$folder/bin/ladder" --size 4096,8192 --sample-ms 50 --json "$file.json"
done
exit $failed
