#!/bin/bash
# usage: config/ci/build.sh FOLDER [configure option or VAR=value]...
# Generates ./configure when the tree has changed, configures FOLDER when options have changed or packages come or gone, runs make
# there: all, or $BUILD_TARGET.
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
# What configure may find: packages with their versions, and programs for those that come from elsewhere.
found() {
    sed -n 's/^\([a-z0-9][^ ]*\) .*/\1/p' "$top/config/packages.txt" |
        xargs dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' 2>/dev/null | grep ' installed$' || true
    command -v mpicc.openmpi mpicc.mpich doxygen pkg-config || true
}
mkdir -p "$dir"
cd "$dir"
now=$(echo "$*" && found)
# dash runs configure, libtool and the recipes, of which a build starts thousands, twice as fast as bash.
[ ! -x /bin/dash ] || export CONFIG_SHELL="${CONFIG_SHELL:-/bin/dash}"
if [ ! -f config.status ] || [ "$top/configure" -nt config.status ] || [ "$now" != "$(cat .configured 2>/dev/null)" ]; then
    ${CONFIG_SHELL-} "$top/configure" "$@"
    echo "$now" >.configured
fi
make -j"${JOBS:-$(nproc)}" "${BUILD_TARGET:-all}"
