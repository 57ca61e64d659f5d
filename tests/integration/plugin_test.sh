#!/bin/bash
# The path of those who write plugins and embed: installs Strata, and runs each script of tests/integration/installed with nothing
# but the installed tree and a copy of the examples in it. STRATA_PREFIX=DIR uses what is installed there; without it the build is
# installed into a staging folder (then its tools need LD_LIBRARY_PATH, and the component path must be told).
# usage: plugin_test.sh [SCRIPT]...
# starts first
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset STRATA_MCA_mca_component_path STRATA_MCA_mca_param_files LD_LIBRARY_PATH

if [ -n "${STRATA_PREFIX-}" ]; then
    root=$STRATA_PREFIX
    export PKG_CONFIG_PATH=$root/lib/pkgconfig
else
    # Without the plugins of Open MPI: libtool links them anew, in place, while other tests load them.
    make -s -C "$STRATA_BUILD" install DESTDIR="$work/stage" openmpi_4_1_LTLIBRARIES= openmpi_5_0_LTLIBRARIES= >"$work/install.log" 2>&1 ||
        { cat "$work/install.log"; fail "make install"; }
    pc=$(find "$work/stage" -name strata-plugin.pc)
    [ -n "$pc" ] || fail "strata-plugin.pc is not installed"
    export PKG_CONFIG_SYSROOT_DIR=$work/stage PKG_CONFIG_PATH=${pc%/*}
    lib=${pc%/pkgconfig/*}
    root=${lib%/*}
    export LD_LIBRARY_PATH=$lib
fi
PATH=$root/bin:$PATH
[ "$(command -v strata-run)" = "$root/bin/strata-run" ] || fail "strata-run is not installed in $root/bin"

export root PATH
[ $# -gt 0 ] || set -- conformance mailbox mqueue cxxbox embedding
# The examples as they are installed, with the pages that explain them.
page=$(find "$root/share" -name write-a-btl.md)
[ -n "$page" ] && [ -f "${page%/*}/examples/btl_mailbox/Makefile" ] || fail "pages and examples are not installed: $page"
# A script, in a folder, and as a user, of its own.
run() { # SCRIPT
    local rc=0
    export work=$work/$1
    export HOME=$work/home
    mkdir -p "$HOME"
    [ -z "${lib-}" ] || export STRATA_MCA_mca_component_path=$HOME/.strata/components:$lib/strata
    cp -r "${page%/*}/examples" "$work/examples"
    chmod -R u+w "$work/examples"
    bash "$STRATA_SOURCE/tests/integration/installed/$1.sh" >"$work.log" 2>&1 || rc=$?
    case $rc in
    0) echo "$1: ok" ;;
    77) echo "$1: left out" ;;
    *) echo "FAILED: $1" ;;
    esac >>"$work.log"
}
# Two at a time: the compiler of one beside the jobs of the other.
for script; do
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    run "$script" &
done
wait
status=0
for script; do
    cat "$work/$script.log"
    ! grep -q '^FAILED' "$work/$script.log" || status=1
done
exit $status
