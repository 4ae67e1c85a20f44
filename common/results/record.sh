#!/usr/bin/env bash
# Records the result files that the pages are generated from: the climb, and the experiments and timelines of the
# lessons' pages. (Profiles are profile.sh's.)
#
#   common/results/record.sh [BUILD_FOLDER [RESULTS_FOLDER [NAME...]]]      (default: build docs/results, and all)
#
# NAME is climb, timelines, sanitizers, model or one of the experiments below.
#
# Needs a GPU and a build for it, with the target lab. Takes a few minutes. Afterwards: common/results/page_tables.py brings
# the pages up to date.
set -euo pipefail
export LADDER_TUNED=no # what lesson 06 chooses by itself is recorded, not what `ladder tune` remembers here

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=${1:-$repository/build}/bin
results=${2:-$repository/docs/results}

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
name=$(date -u +%F)-$(tr '[:upper:]' '[:lower:]' <<<"${gpu##* }") # "NVIDIA H200" becomes h200
mkdir -p "$results/experiments" "$results/traces" "$results/model"
readonly only=" ${*:3} "
wanted() { [[ $only == "  " || $only == *" $1 "* ]]; }

# The climb: every rung and both libraries, in one interleaved run for each shape, on inputs that are not in L2. 5000 is no
# power of two, so that rows straddle cache lines; 256x1024x8192 has few tiles and a long K, which clusters split. The host's
# half is the experiment `levels`.
if wanted climb; then
  "$programs/ladder" --lessons 01,02,03,04,05,06 --size 1024,4096,5000,8192 --shape 256x1024x8192 --inputs cold \
    --sample-ms 50 --json "$results/$name.json"
fi

# experiment NAME PROGRAM OPTIONS...
experiment() {
  wanted "$1" || return 0
  "$programs/$2" "${@:3}" --json "$results/experiments/$name-$1.json"
}
experiment coalescing 01_naive --size 2048 --along columns,rows
experiment tiled_cores 02_tiled --size 4096 --core wgmma,mma_sync,fma
experiment slots 03_double_buffer --size 4096 --slots 1,2,3,4,5
experiment copies 03_double_buffer --size 4096 --copy memcpy_async,block,primitives,cg,registers --slots 1,2,3
experiment bytes 03_double_buffer --size 4096 --copy memcpy_async --bytes 16,8,4
experiment cores 03_double_buffer --size 4096 --core wgmma,mma_sync,fma --slots 1,2,3
experiment portable 04_portable --size 1024,4096
experiment small ladder --size 256,512,1024,2048 --lessons 03,04,05,06
# The same tile, copies, K steps, grid and epilogue in all: roles or none, a ring, blocks on a multiprocessor.
experiment cube 05_cube --size 4096,5000,8192 --roles off,on --slots 1,2,3,4 --blocks 1,2
experiment in_flight 05_cube --size 4096,5000,8192 --in_flight 0,1
experiment consumers 05_ws_double_buffer --size 2048,4096,8192 --shape 8192x8192x512,8192x8192x1024 \
  --consumers together,ping-pong --epilogue none,bias_gelu
experiment ring_mma_sync 03_double_buffer --size 4096,8192 --core mma_sync --slots 2,3,4
experiment roles_without_wgmma 05_ws_double_buffer --size 4096,8192 --core mma_sync --loader tma,cp_async --slots 1,2,3,4
experiment dual_gemm 05_dual_gemm --size 2048,4096,8192 --shape 4096x14336x4096
experiment group 05_ws_double_buffer --size 8192 --group 1,4,8,16
experiment epilogue 05_ws_double_buffer --size 2048,4096,8192 --epilogue none,bias_relu,bias_gelu
experiment ratio 05_ws_double_buffer --size 4096 --ratio 1:1,1:2,1:3

# Lesson 06 against 05 and the libraries on shapes from real models and at their edges. Long samples: a GPU at its power
# limit needs a tenth of a second to reach the clock of a kernel.
shapes=2048x2048x2048,4096x4096x4096,8192x8192x8192,16384x16384x16384,8192x28672x8192,4096x4096x14336,512x8192x8192,64x8192x8192
experiment shapes ladder --lessons 05,06 --sample-ms 100 --rounds 7 --shape 1024x1024x1024,$shapes
# The kernels for any shape, by plan alone, on shapes that nobody tuned it for: 20 from a fixed seed, and 20 of a seed that nobody can know
# before the day. A shape takes about four seconds, three of them to choose among cublasLt's algorithms.
random_shapes() { python3 "$repository/common/results/random_shapes.py" "$@"; }
any_shapes() { experiment "$1" 06_any_shape --no-verify --sample-ms 30 --rounds 3 --shape "$2"; }
unknown="$(random_shapes 16 20),$(random_shapes "$(date -u +%Y%m%d)" 20)"
any_shapes any_matrix "$unknown"
# The shapes that were drawn on the day before kernels last changed: what changed there is the kernels.
any_shapes any_matrix_again "$(random_shapes 20261123 20)"
any_shapes named_shapes 3072x3072x3072,5000x5000x5000,8192x1032x2056,12288x64x12288,256x256x65536,1x8192x8192
experiment hot ladder --lessons 05,06 --size 1024 --inputs hot
experiment sustained ladder --lessons 05,06 --size 8192 --sample-ms 1000 --rounds 3

# What plan.cpp is fitted to, and what shows where clusters pay: all plans of 06_any_shape, on cubes, on shapes of language
# models, on skinny ones and on random ones. None of any_matrix is among them. `ladder tune` also remembers the fastest; not where it would count.
remembered=$(mktemp -d)
trap 'rm -r "$remembered"' EXIT
time_plans() {
  XDG_CACHE_HOME=$remembered experiment "$1" ladder tune --no-verify --no-library --sample-ms 15 --rounds 3 --shape "$2"
}
fitted=(
  1x8192x8192 16x4096x4096 16x14336x4096 17x3008x8760 32x8192x8192 64x8192x8192 87x16936x1000 128x4096x14336
  128x28672x8192 135x144x13048 138x9832x3616 145x3728x4568 153x3080x776 256x256x65536 256x4096x14336 256x6144x4096
  355x3536x3344 384x2192x6616 430x1536x9704 472x528x8456 512x4096x4096 512x8192x8192 512x28672x4096 723x240x1664
  735x1848x536 768x768x768 898x336x15632 1024x1024x1024 1024x4096x4096 1024x8192x28672 1024x14336x4096 1536x1536x1536
  1604x10464x736 1643x152x2568 1746x3704x18104 1874x784x3112 2032x728x2336 2048x2048x2048 2048x4096x4096
  2048x6144x4096 2048x11008x4096 2130x6104x6792 2491x776x2936 2506x2632x4040 3072x3072x3072 3324x792x1120
  3328x3328x3328 4096x1024x4096 4096x4096x4096 4096x4096x11008 4096x5120x5120 4216x296x1272 4854x200x13464
  5000x5000x5000 8192x1024x8192 8192x1032x2056 8192x4096x1024 8192x8192x8192 9673x1312x3120 10585x536x3384
  12288x64x12288 16384x2048x2048
)
time_plans plans "$(IFS=, && echo "${fitted[*]}")"
time_plans plans_random "$(random_shapes 5 64)"
# any_matrix again, with the plans that `ladder tune` finds fastest there.
if wanted any_matrix_tuned; then
  XDG_CACHE_HOME=$remembered "$programs/ladder" tune --no-verify --no-library --sample-ms 12 --rounds 3 --shape "$unknown"
  LADDER_TUNED=yes XDG_CACHE_HOME=$remembered any_shapes any_matrix_tuned "$unknown"
fi
# Batches of lesson 07, where the last wave of tiles is not full.
experiment wide_weights 06_any_shape --no-verify --rounds 5 --sample-ms 60 \
  --shape 1600x16384x16384,2048x16384x16384,2400x16384x16384 --tile 64x128 --cluster_m 1 --cluster_n 1 --cluster_k 1,2 \
  --stream_k off
experiment stream_k 06_any_shape --no-verify --shape 5000x5000x5000,2506x2632x4040,3072x3072x3072 --stream_k off,on
experiment fused 06_any_shape --size 4096 --shape 256x1024x8192 --epilogue none,bias_relu,bias_gelu
experiment grid_barrier 06_grid_barrier
experiment pdl 06_any_shape --size 1024,2048,4096 --pdl on,off

# Lesson 07: the levels of overlap, and an experiment for each question of its page.
experiment levels 07_streams --rounds 7
for question in pinned streams chunk alloc stalls scratch default_stream waits events graph layers recycle; do
  experiment "$question" 07_streams --experiment "$question"
done
for question in arrival sharing priority overhead fragments; do # the shape does not matter
  experiment "$question" 07_streams --experiment "$question" --shape 2048x4096x4096
done
experiment default_streams 07_default_streams
if [[ $(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l) -ge 2 ]]; then
  experiment engines 07_streams --experiment engines
  experiment peers 07_streams --experiment peers --shape 4096x8192x8192 --batches 100 --rounds 7
  # 31 x 32 tiles: with 8 SMs less, clusters still need 16 rounds, as they do with all of them.
  experiment allreduce 07_streams --experiment allreduce --shape 7936x8192x16384 --batches 50 --rounds 7
fi

# Timelines, of one block so that the files stay small. timeline PROGRAM OPTIONS...
timeline() {
  wanted timelines || return 0
  "$programs/$1" "${@:2}" --trace "$results/traces/$1.json" --trace-blocks 1
}
# The same of a program that is recorded more than once. timeline_as NAME PROGRAM OPTIONS...
timeline_as() {
  wanted timelines || return 0
  "$programs/$2" "${@:3}" --trace "$results/traces/$1.json" --trace-blocks 1
}
for slots in 1 3; do
  timeline_as 03_double_buffer-slots_$slots 03_double_buffer --size 4096 --slots $slots
done
timeline 04_warp_specialized --size 4096
timeline 05_ws_double_buffer --size 4096
timeline 06_any_shape --size 4096
if wanted timelines; then
  "$programs/07_streams" --batches 24 --rounds 1 --shape 2048x12288x12288 --trace "$results/traces/07_streams.json"
fi

# What compute-sanitizer's tools say of the tests; takes minutes.
if wanted sanitizers; then
  raw=$(mktemp -d)
  "$programs/01_naive" --size 256 --rounds 1 --json "$raw/header.json" >/dev/null
  ctest --test-dir "$programs/.." --build-config Sanitize --label-regex sanitize --parallel 6 \
    --output-junit "$raw/junit.xml" --test-output-size-passed 100000 --test-output-size-failed 100000 || true
  python3 "$repository/common/results/sanitizer_results.py" "$raw/junit.xml" "$raw/header.json" \
    "$results/sanitizers/$name.json"
fi

# What the cost model predicts for all of these.
if wanted model; then
  "$programs/predict" --lessons --results "$results" --json "$results/model/$name.json"
fi

# What ingredients are worth; needs the target lab.
for number in 02 05 06; do
  experiment ablate_$number ladder ablate $number
done
