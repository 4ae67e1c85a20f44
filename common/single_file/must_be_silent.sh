#!/usr/bin/env bash
# must_be_silent.sh COMMAND ARGUMENT...
# Runs the command, and fails as well when it says anything: nvcc has no option that makes all that it and ptxas warn of
# errors, and these files are compiled without options.
set -uo pipefail

log=$("$@" 2>&1)
status=$?
[[ -n $log ]] && echo "$log" >&2
((status == 0)) || exit "$status"
[[ -z $log ]]
