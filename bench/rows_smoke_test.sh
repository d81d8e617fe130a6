#!/bin/sh
# rows_smoke_test.sh BENCH HOLDBACKD FLAGS... -- ROW...: rows of the table at their smallest. Whether
# goals are met is of no interest here; that every run is right is, and that the file says so.
set -eu
bench=$1
server=$2
shift 2
out=$(mktemp "${TEST_TMPDIR:-/tmp}/rows.XXXXXX")
"$bench" "$server" "$@" --quick --runs=1 --out="$out"
grep -q '"format": 1' "$out"
grep -q '"events_per_second": [1-9]' "$out"
grep -q '"verdict": "\(met\|NOT MET\)"' "$out"
if grep -q 'went wrong' "$out"; then exit 1; fi
