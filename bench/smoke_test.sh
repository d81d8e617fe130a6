#!/bin/sh
# smoke_test.sh BENCH HOLDBACKD FLAGS...: the benchmark program on a few thousand events. It checks
# each one itself; here it must end well and say what a script could read.
set -eu
bench=$1
server=$2
shift 2
out=$("$bench" "$server" --events=10000 --disorder=300 --keys=50 --batch=100 --subscribers=2 \
  --json "$@")
echo "$out"
echo "$out" | grep -q '"order":.*"events":10000,.*"acks_per_second":[1-9]'
