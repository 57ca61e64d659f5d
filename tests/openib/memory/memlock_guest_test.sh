#!/bin/bash
# ulimit -l on a real kernel, which counts what is pinned unless the process may lock any amount (CAP_IPC_LOCK): root without that
# capability, and a user. The message has limit and remedy; with it another transport is taken unless openib was asked for.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
export HOSTILE_TIMEOUT=900
chmod 755 "$work" && chmod 1777 "${TMPDIR:-/tmp}" # for the user
hostile=$STRATA_BUILD/tests/programs/hostile
incapable=(setpriv --bounding-set -ipc_lock)
user=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
limited() { # KIB COMMAND...
    run bash -c "ulimit -l $1 && exec \"\$@\"" - "${@:2}"
}
says() { check "says $1: $(cat "$work/err")" grep -qE -- "$1" "$work/err"; }
too_little='rxe0:1: no registered buffers can be made: Cannot allocate memory; ulimit -l is 64 KiB, raise it \(limits.conf: memlock unlimited\)'

limited 64 "${incapable[@]}" strata-run -n 2 --mca btl openib,self "$hostile" exchange
check "by name: status $status" test "$status" = 1
says "openib was asked for and cannot be used: $too_little"
limited 64 "${incapable[@]}" strata-run -n 2 "$hostile" exchange
check "not asked for: status $status" test "$status" = 0
check "not asked for, and silent: $(cat "$work/err")" test ! -s "$work/err"
limited 64 "${incapable[@]}" strata-run -n 2 --mca mca_base_verbose 2 "$hostile" exchange
says "component btl_openib skipped: $too_little"
limited 64 "${user[@]}" strata-run -n 2 --mca btl openib,self "$hostile" exchange
check "a user, by name: status $status" test "$status" = 1
says "openib was asked for and cannot be used: $too_little"
# Enough to begin, too little for long messages.
limited 1024 "${incapable[@]}" strata-run -n 2 --mca btl openib,self "$hostile" exchange
check "1 MiB: status $status: $(cat "$work/err")" test "$status" = 0
says 'long messages go in fragments'
# Root as it is has no limit.
limited 64 strata-run -n 2 --mca btl openib,self "$hostile" exchange
check "with the capability: status $status: $(cat "$work/err")" test "$status" = 0
finish
