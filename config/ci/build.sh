#!/bin/bash
# usage: config/ci/build.sh FOLDER [configure option or VAR=value]...
# Generates ./configure when the tree has changed, configures FOLDER when needed, runs make there: all, or $BUILD_TARGET.
set -eu
cd "$(dirname "$0")/../.."
top=$(pwd)
dir=$1
shift

sh config/discover.sh
for f in configure.ac Makefile.am autogen.sh config/discovered.* config/*.in components/*/configure.m4; do
    if [ -f "$f" ] && [ "$f" -nt configure ]; then
        ./autogen.sh
        break
    fi
done
mkdir -p "$dir"
cd "$dir"
if [ ! -f config.status ] || [ "$top/configure" -nt config.status ] || [ "$*" != "$(cat .options 2>/dev/null)" ]; then
    "$top/configure" "$@"
    echo "$*" >.options
fi
make -j"${JOBS:-$(nproc)}" "${BUILD_TARGET:-all}"
