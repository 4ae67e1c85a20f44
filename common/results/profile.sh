#!/usr/bin/env bash
# Records what Nsight Compute counts in one launch of each lesson's kernel: the profiles of the pages.
#
#   common/results/profile.sh BUILD_FOLDER OUTPUT SIZE [LIST]      (record.py calls it: record.py BUILD profiles)
#
# LIST: all (the default), or order, what L2 does in kernels that walk over tiles in different orders.
# Needs a GPU, a build for it, and a profiler that may read the GPU's counters (ncu; often only root may). Takes some
# seconds a launch. A metric that this profiler does not have is listed in the file as absent.
set -euo pipefail
export LADDER_TUNED=no # what lesson 06 chooses by itself is recorded, not what `ladder tune` remembers here

# The launches: a program and its knobs. One whose program was not built is left out.
readonly launches=(
  "01_naive --along columns"
  "01_naive --along rows"
  "02_tiled --core fma"
  "02_tiled --core wgmma"
  "03_double_buffer --slots 2"
  "03_double_buffer --slots 3"
  # Shown only where a page asks for bytes (profiles.py).
  "03_double_buffer --copy memcpy_async --bytes 16"
  "03_double_buffer --copy memcpy_async --bytes 8"
  "03_double_buffer --copy memcpy_async --bytes 4"
  "04_warp_specialized --step tma"
  "04_warp_specialized --step roles"
  "04_warp_specialized --step tma_store"
  "04_warp_specialized --step walk"
  "04_warp_specialized --step storer"
  "05_ws_double_buffer --group 1"
  "05_ws_double_buffer --group 4"
  "05_ws_double_buffer --group 8"
  "05_ws_double_buffer --group 16"
  "06_clusters_dsmem --step multicast --clusters always"
  "06_clusters_dsmem --step split_k --clusters always"
  "06_any_shape --tile 128x256 --cluster_m 1 --cluster_n 1"
  "06_any_shape --tile 128x256 --cluster_m 2 --cluster_n 1"
)

readonly orders=(
  "05_ws_double_buffer --in_flight 1 --group 1"
  "05_ws_double_buffer --in_flight 1 --group 4"
  "05_ws_double_buffer --in_flight 1 --group 8"
  "05_ws_double_buffer --in_flight 1 --group 16"
  "06_any_shape --tile 128x256 --cluster_m 2 --cluster_n 1 --group 1"
  "06_any_shape --tile 128x256 --cluster_m 2 --cluster_n 1 --group 4"
  "06_any_shape --tile 128x256 --cluster_m 2 --cluster_n 1 --group 8"
  "06_any_shape --tile 128x256 --cluster_m 2 --cluster_n 1 --group 16"
)
readonly order_metrics=(
  gpu__time_duration.sum
  lts__t_sector_hit_rate.pct
  l1tex__m_xbar2l1tex_read_bytes.sum
  lts__t_bytes.sum
  dram__bytes_read.sum
  dram__bytes_write.sum
)

metrics=(
  gpu__time_duration.sum
  # How busy the tensor cores are, by several names; profiles.py takes the first that exists.
  sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active
  sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active
  sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active
  sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active
  # How busy the SMs' schedulers and L2 are.
  sm__inst_issued.avg.pct_of_peak_sustained_active
  lts__throughput.avg.pct_of_peak_sustained_elapsed
  # Bytes: from L2 to the SMs, all of L2, from and to memory.
  lts__t_sector_hit_rate.pct
  l1tex__m_xbar2l1tex_read_bytes.sum
  lts__t_bytes.sum
  dram__bytes_read.sum
  dram__bytes_write.sum
  # Copies from global to shared memory: instructions and sectors that look into L1, and those that go past it.
  sm__sass_inst_executed_op_ldgsts_cache_access.sum
  sm__sass_inst_executed_op_ldgsts_cache_bypass.sum
  sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum
  sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum
  lts__t_sectors_srcunit_tex_op_read.sum
  l1tex__t_sector_hit_rate.pct
  # What is resident, and why not more.
  sm__warps_active.avg.pct_of_peak_sustained_active
  launch__registers_per_thread
  launch__shared_mem_per_block_dynamic
  launch__shared_mem_per_block
  launch__occupancy_limit_registers
  launch__occupancy_limit_shared_mem
  launch__occupancy_limit_warps
  launch__occupancy_limit_blocks
)
# What warps wait for.
for reason in barrier branch_resolving dispatch_stall drain gmma lg_throttle long_scoreboard math_pipe_throttle membar \
  mio_throttle misc no_instruction not_selected selected short_scoreboard sleeping tex_throttle wait; do
  metrics+=("smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio")
done

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=${1:?the build folder}/bin output=${2:?the file to write} size=${3:?M, N and K} list=${4:-all}
raw=$(mktemp -d)

fail() {
  echo "profile.sh: error: $*" >&2
  exit 2
}

case $list in
  all) chosen=("${launches[@]}") ;;
  order) chosen=("${orders[@]}") metrics=("${order_metrics[@]}") ;;
  *) fail "LIST is all or order, not '$list'" ;;
esac

ncu=$(command -v ncu || compgen -G '/usr/local/cuda*/bin/ncu' | tail -n 1 || compgen -G '/opt/nvidia/nsight-compute/*/ncu' |
  tail -n 1) || fail "there is no Nsight Compute (ncu)"

# profiled CSV METRICS PROGRAM OPTIONS...: profiles the first launch of the lesson's kernel. True if there are figures.
profiled() {
  # The program is killed behind that launch, so its exit code says nothing.
  "$ncu" --clock-control none --launch-count 1 --kill yes --kernel-name-base demangled \
    --kernel-name 'regex:.*lesson[0-9]+::(\w+::)?gemm.*' --metrics "$2" --csv --page raw --print-units base \
    --force-overwrite --log-file "$1" "$programs/$3" "${@:4}" --no-verify --rounds 1 >"$1.out" 2>&1 || true
  ! grep -q ERR_NVGPUCTRPERM "$1" "$1.out" 2>/dev/null || fail "the profiler may not read the GPU's counters: run as root"
  grep -q '^"0"' "$1" 2>/dev/null
}

joined() { (IFS=,; echo "$*"); }

# Some profilers stop at a metric that they do not know: then each is tried by itself.
if ! profiled "$raw/probe" "$(joined "${metrics[@]}")" 01_naive --size 256; then
  known=()
  for metric in "${metrics[@]}"; do
    if profiled "$raw/probe" "$metric" 01_naive --size 256; then known+=("$metric"); fi
  done
  ((${#known[@]})) || fail "nothing could be profiled: $(cat "$raw/probe" "$raw/probe.out" 2>/dev/null | tail -n 3)"
  asked=$(joined "${known[@]}")
else
  asked=$(joined "${metrics[@]}")
fi

printf '%s\n' "${metrics[@]}" >"$raw/metrics.txt"
"$ncu" --version | sed -n 's/^Version \([0-9.]*\).*/\1/p' >"$raw/profiler.txt"
"$programs/01_naive" --size 256 --rounds 1 --json "$raw/header.json" >/dev/null

count=0
for launch in "${chosen[@]}"; do
  read -ra words <<<"$launch"
  if [[ ! -x $programs/${words[0]} ]]; then
    echo "skipped, because it is not built: $launch"
    continue
  fi
  number=$(printf %02d "$count")
  echo "$launch --size $size" | tee "$raw/$number.txt"
  profiled "$raw/$number.csv" "$asked" "${words[@]}" --size "$size" ||
    fail "$launch: $(cat "$raw/$number.csv" "$raw/$number.csv.out" 2>/dev/null | tail -n 3)"
  count=$((count + 1))
done

echo "what the profiler wrote is in $raw"
python3 "$repository/common/results/profiles.py" "$raw" "$output"
