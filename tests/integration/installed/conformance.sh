#!/bin/bash
# strata-conformance of the installed tree over the plugins of docs/examples, by processes and by threads; a plugin with a fault is
# found out. Run by ../plugin_test.sh.
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"

[ "$(command -v strata-conformance)" = "$root/bin/strata-conformance" ] || fail "strata-conformance is not installed in $root/bin"
! ldd "$root/bin/strata-conformance" | grep -q libcheck || fail "it needs Check at run time"
[ -n "$(find "$root/share" "$root/man" -name strata-conformance.1 2>/dev/null)" ] || fail "its manual page is not installed"

cd "$work/examples"
make -s -C btl_mailbox install CFLAGS="-O2 -g ${SANITIZER_FLAGS-}" || fail "btl_mailbox does not build"
# The short form has the whole suite by processes, and by threads the contract with what only threads can have.
conform 2 mailbox
if full_form; then
    conform 4 mailbox
    conform threads mailbox
else
    conform threads mailbox transport clients notify landing
fi

# One byte of a fragment is lost: the contract's cases say so.
cp -r btl_mailbox broken
sed -i 's/^\( *\)frag\.len = wire\.len;/\1frag.len = wire.len - (wire.len > 100);/' broken/transport.c
! cmp -s btl_mailbox/transport.c broken/transport.c || fail "the fault was not put in"
make -s -C broken install CFLAGS="-O2 -g ${SANITIZER_FLAGS-}" || fail "the broken btl_mailbox does not build"
for how in "strata-run --timeout $job_limit -n 2" ""; do
    rc=0
    # shellcheck disable=SC2086 # a command of several words, or none
    out=$($how strata-conformance --mca btl self,mailbox --only transport/am_sizes 2>&1) || rc=$?
    [ "$rc" -eq 1 ] || fail "a transport that loses a byte: status $rc: $out"
    grep -q '^failed   transport/am_sizes over mailbox: .*is wrong' <<<"$out" || fail "a transport that loses a byte: $out"
done
echo "a transport that loses a byte fails: ok"
