#!/usr/bin/env bash
# bench/install.sh: installs what bazel/packages-bench.txt names and is missing. Their services are
# not started: the benchmark starts servers of its own, on free ports and folders in /tmp.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

wanted=$(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' bazel/packages-bench.txt)
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)

# A policy that says no (101) to starting services, for as long as this runs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get update -qq
# shellcheck disable=SC2086  # one word per package
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends $wanted

# Bazel looks for libnats when its server starts.
./bazelw shutdown
