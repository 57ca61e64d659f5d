#!/bin/bash
# The path of those who write plugins and embed: installs Strata, and runs each script of tests/integration/installed with nothing
# but the installed tree and a copy of the examples in it. STRATA_PREFIX=DIR uses what is installed there; without it the build is
# installed into a staging folder (then its tools need LD_LIBRARY_PATH, and the component path must be told).
# usage: plugin_test.sh [SCRIPT]...
# starts first: it takes half a minute.
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"
command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home
mkdir -p "$HOME"
unset STRATA_MCA_mca_component_path STRATA_MCA_mca_param_files

if [ -n "${STRATA_PREFIX-}" ]; then
    root=$STRATA_PREFIX
    export PKG_CONFIG_PATH=$root/lib/pkgconfig
else
    make -s -C "$STRATA_BUILD" install DESTDIR="$work/stage" >"$work/install.log" 2>&1 ||
        { cat "$work/install.log"; fail "make install"; }
    pc=$(find "$work/stage" -name strata-plugin.pc)
    [ -n "$pc" ] || fail "strata-plugin.pc is not installed"
    export PKG_CONFIG_SYSROOT_DIR=$work/stage PKG_CONFIG_PATH=${pc%/*}
    lib=${pc%/pkgconfig/*}
    root=${lib%/*}
    export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export STRATA_MCA_mca_component_path=$HOME/.strata/components:$lib/strata
fi
PATH=$root/bin:$PATH
[ "$(command -v strata-run)" = "$root/bin/strata-run" ] || fail "strata-run is not installed in $root/bin"

export work root PATH
status=0
[ $# -gt 0 ] || set -- mailbox cxxbox conformance mqueue embedding
# The examples as they are installed, with the pages that explain them.
page=$(find "$root/share" -name write-a-btl.md)
[ -n "$page" ] && [ -f "${page%/*}/examples/btl_mailbox/Makefile" ] || fail "pages and examples are not installed: $page"
for script; do
    rm -rf "$work/examples" "$HOME/.strata"
    cp -r "${page%/*}/examples" "$work/examples"
    chmod -R u+w "$work/examples"
    rc=0
    bash "$STRATA_SOURCE/tests/integration/installed/$script.sh" || rc=$?
    case $rc in
    0) echo "$script: ok" ;;
    77) echo "$script: left out" ;;
    *) echo "FAILED: $script" && status=1 ;;
    esac
done
exit $status
