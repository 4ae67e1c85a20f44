#!/usr/bin/env bash
# Runs the compiler given as arguments, and fails as well when ptxas reports a register spill or one of the
# messages C75xx, which say that wgmma was serialised (C7510) or setmaxnreg ignored (C7508). To ptxas these are
# remarks, which no option turns into errors; to a kernel here they mean that it is not what it claims to be.
set -uo pipefail

log=$("$@" 2>&1)
status=$?
[[ -n $log ]] && echo "$log" >&2
((status == 0)) || exit "$status"

if grep -qE '\(C75[0-9]{2}\)|[1-9][0-9]* bytes spill|[Rr]egisters are spilled' <<<"$log"; then
  echo "error: ptxas spilled registers, serialised wgmma or ignored setmaxnreg (see above)" >&2
  exit 1
fi
