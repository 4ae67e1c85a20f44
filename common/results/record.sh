#!/usr/bin/env bash
# Records the result files that the pages are generated from: the climb, and the experiments of the lessons' pages.
#
#   common/results/record.sh [BUILD_FOLDER [RESULTS_FOLDER]]      (default: build docs/results)
#
# Needs a GPU and a build for it. Takes a few minutes. Afterwards: common/results/page_tables.py brings the pages up to date.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=${1:-$repository/build}/bin
results=${2:-$repository/docs/results}

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
name=$(date -u +%F)-$(tr '[:upper:]' '[:lower:]' <<<"${gpu##* }") # "NVIDIA H200" becomes h200
mkdir -p "$results/experiments"

# The climb: every rung and both libraries, in one interleaved run for each size.
"$programs/ladder" --size 2048,4096,8192,16384 --json "$results/$name.json"

# experiment NAME PROGRAM OPTIONS...
experiment() {
  "$programs/$2" "${@:3}" --json "$results/experiments/$name-$1.json"
}
experiment coalescing 01_naive --size 2048 --along columns,rows
experiment tiled_cores 02_tiled --size 4096 --core wgmma,mma_sync,fma
experiment slots 03_double_buffer --size 4096 --slots 1,2,3,4,5
experiment copies 03_double_buffer --size 4096 --copy memcpy_async,block,primitives,cg,registers --slots 1,2,3
experiment bytes 03_double_buffer --size 4096 --bytes 16,8,4
experiment cores 03_double_buffer --size 4096 --core wgmma,mma_sync,fma --slots 1,2,3
experiment slot_k 04_warp_specialized --size 4096 --slot_k 64,128
experiment small ladder --size 256,512,1024,2048 --lessons 03,04,05
experiment ring 05_ws_double_buffer --size 4096,8192 --slots 2,3,4
experiment consumers 05_ws_double_buffer --size 2048,4096,8192 --shape 8192x8192x512,8192x8192x1024 \
  --consumers together,ping-pong --epilogue none,bias_gelu
experiment dual_gemm 05_dual_gemm --size 2048,4096,8192 --shape 4096x14336x4096
experiment group 05_ws_double_buffer --size 8192 --group 1,4,8,16
experiment epilogue 05_ws_double_buffer --size 2048,4096,8192 --epilogue none,bias_relu,bias_gelu
experiment ratio 05_ws_double_buffer --size 4096 --ratio 1:1,1:2,1:3
