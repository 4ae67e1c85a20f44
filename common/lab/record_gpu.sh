#!/usr/bin/env bash
# Records the GPU's half of the lab's matrix in docs/results/lab, from where docs/lab.md is generated.
#
#   common/lab/record_gpu.sh build              builds the lab's programs twice, as they are and with bounded waits
#   common/lab/record_gpu.sh run 02,03,04       runs the matrix of these lessons; rows of others in today's file are kept
#   common/lab/record_gpu.sh run 02,03,04 500   the same, but ends before 500 seconds and says what is left; exit code 1
#                                               if something is
#
# A run adds to today's file what it lacks, so that one that was stopped, or killed, is continued by the same command. It
# says first how long it may take. Needs nvcc, git, python3 and a Hopper GPU. LADDER_COMMIT names the commit where git
# cannot; a file is only continued with the commit that began it. LADDER_LAB_RESULTS is the folder of the file, if not
# docs/results/lab. Afterwards: common/results/page_tables.py brings the page up to date.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
step=${1:?build, or run NN,NN} lessons=${2:-} seconds=${3:-}

if [[ $step == build ]]; then
  for preset in gpu gpu-debug; do
    cmake --preset "$preset" -DCMAKE_CUDA_ARCHITECTURES=90a-real
    cmake --build --preset "$preset" --target lab --parallel "$(nproc)"
  done
  exit
fi

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
name=$(date -u +%F)-$(tr '[:upper:]' '[:lower:]' <<<"${gpu##* }") # "NVIDIA H200" becomes h200

# matrix DETECTORS JOBS
matrix() {
  common/lab/matrix.py --device gpu --programs build-gpu/bin --debug-programs build-gpu-debug/bin --lessons "$lessons" \
    --json "${LADDER_LAB_RESULTS:-docs/results/lab}/$name.json" --continue --detectors "$1" --jobs "$2" \
    ${seconds:+--budget-s $((seconds - SECONDS))} --commit "${LADDER_COMMIT:-}"
}

# What depends on time runs alone.
matrix result,timing,compiler 1
matrix memcheck,racecheck,synccheck,initcheck,bounded 3
