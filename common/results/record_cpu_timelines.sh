#!/usr/bin/env bash
# Records the timelines of the CPU device that the site shows beside those of a GPU: one block, a few steps.
#
#   common/results/record_cpu_timelines.sh [BUILD_FOLDER [RESULTS_FOLDER]]      (default: build-cpu docs/results)
#
# Needs a build for the CPU device. The times are those of its virtual clock, so they are the same on every machine.
set -euo pipefail
export LADDER_TUNED=no # what lesson 06 chooses by itself is recorded, not what `ladder tune` remembers here

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=${1:-$repository/build-cpu}/bin
results=${2:-$repository/docs/results}
mkdir -p "$results/traces"

for program in 03_double_buffer 04_warp_specialized 05_ws_double_buffer 06_any_shape; do
  "$programs/$program" --size 512 --no-verify --trace "$results/traces/$program-cpu_device.json" --trace-blocks 1
done

# Of lesson 03 also the one without a ring, to stand beside the other.
"$programs/03_double_buffer" --size 512 --slots 1 --no-verify --trace "$results/traces/03_double_buffer-slots_1-cpu_device.json" \
  --trace-blocks 1
