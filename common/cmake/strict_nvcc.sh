#!/usr/bin/env bash
# strict_nvcc.sh [--allow C75xx]... COMPILER ARGUMENT...
# Runs the compiler, and fails as well when ptxas says C75xx: that it serialised wgmma (C7510, C7511, C7518), put in waits
# for it (C7517) or ignored setmaxnreg (C7508). To ptxas these are remarks, which no option turns into errors; here they
# mean that the kernel is not what its source says.
set -uo pipefail

allowed=()
while [[ $1 == --allow ]]; do
  allowed+=("$2")
  shift 2
done
log=$("$@" 2>&1)
status=$?
[[ -n $log ]] && echo "$log" >&2
((status == 0)) || exit "$status"

for remark in "${allowed[@]}"; do
  log=${log//"($remark)"/}
done
if [[ $log =~ \(C75[0-9][0-9]\) ]]; then
  echo "error: ptxas remarks C75xx are errors here" >&2
  exit 1
fi
