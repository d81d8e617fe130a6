#!/bin/sh
# orderbook_test.sh ORDERBOOK HOLDBACKD PROCESSOR: the run ends well on small feeds of every shape,
# says what it must say, and refuses wrong use.
orderbook=$1
shift

# run FLAG...: ends with 0, and its last line is the one that was promised.
run() {
  out=$("$orderbook" "$server" "$processor" "$@") || { echo "$*: exit code $?" >&2; exit 1; }
  printf '%s\n' "$out" | tail -n 1 | grep -Eqx "orderbook: ok, [0-9]+ events, [0-9]+ results, \
[0-9]+ events/s \(the cloud pipeline published 76,200/s\)" && return
  printf '%s: last line is not as promised:\n%s\n' "$*" "$out" >&2
  exit 1
}

# refuse CODE FLAG...
refuse() {
  wanted=$1
  shift
  "$orderbook" "$server" "$processor" "$@" >/dev/null 2>&1
  code=$?
  [ $code = "$wanted" ] && return
  echo "$*: exit code $code, should be $wanted" >&2
  exit 1
}

server=$1
processor=$2
run --events=3000 --contracts=7 --disorder=500
run --events=3000 --contracts=1 --disorder=1 --depth=1
run --events=1 --contracts=40 --disorder=1000 --seed=18446744073709551615
run --events=3000 --contracts=20 --disorder=100000 --seed=0 --depth=1024

"$orderbook" --help | grep -q 'bazelw run //examples/orderbook' || exit 1
refuse 64 --events=0
refuse 64 --events=ten
refuse 64 --depth=1025
refuse 64 --nothing
processor=$server.absent.so
refuse 1 --events=10
