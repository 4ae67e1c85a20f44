#!/usr/bin/env bash
# recording_nvcc.sh LOG COMPILER ARGUMENT...
# Runs the compiler and keeps what it says in the file LOG: for broken programs the compiler is one of the detectors, so
# that no remark of ptxas is an error here.
set -uo pipefail

log=$1
shift
mkdir -p "$(dirname "$log")"
"$@" >"$log" 2>&1
status=$?
((status == 0)) || cat "$log" >&2
exit "$status"
