#!/bin/sh
# Makes ./configure from the tree as it is: finds components, tools, tests and examples, then runs autotools.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "autogen.sh: $tool is missing; on Debian: apt-get install autoconf automake libtool pkg-config" >&2
        exit 1
    }
done
sh config/discover.sh
mkdir -p config/m4 config/aux
autoreconf --install --force
