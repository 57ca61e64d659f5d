#!/bin/bash
# usage: config/ci/install.sh BUILD: builds the plugin form in BUILD and installs it into BUILD/install.
set -eu
cd "$(dirname "$0")/../.."
bash config/ci/build.sh "$1" --prefix="$1/install"
make -C "$1" -s install
echo "RESULT: installed into $1/install; tools in $1/install/bin"
