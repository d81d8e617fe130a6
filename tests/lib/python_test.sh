#!/bin/sh
# python_test.sh TEST.py ARGUMENTS...: Debian's own Python, the one that has python3-grpcio; another
# may come first on PATH.
exec /usr/bin/python3 -B "$@"
