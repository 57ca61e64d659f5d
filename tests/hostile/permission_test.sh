#!/bin/bash
# Ranks that may not look into each other's memory, from the start or from some moment on; other PID namespaces; little or
# no shared memory. Data is right all the same, or the error has a name.
. "$STRATA_SOURCE/tests/hostile/lib.sh"

try() { # DESCRIPTION COMMAND...: status 0, or 77: skipped
    local what=$1 status
    shift
    timeout 200 "$@" >"$work/out" 2>"$work/err"
    status=$?
    case $status in
    0) echo "$what: ok" ;;
    77) echo "$what: skipped ($(head -1 "$work/err"))" ;;
    *) complain "$what: status $status: $*" ;;
    esac
    ! grep -qiE 'SIGBUS|bus error|segmentation' "$work/err" || complain "crashed: $*"
}

for mode in auto one_sided cooperative; do
    m="--mca btl_sm_single_copy $mode --mca btl_sm_rdma_min 16k"
    try "single copy $mode" strata-run -n 3 $m "$hostile" exchange
    try "single copy $mode refused in mid-run" strata-run -n 3 $m "$hostile" revoke run
    try "single copy $mode refused in mid-run to one rank" strata-run -n 3 $m "$hostile" revoke run 1
    [ "$(grep -ciE 'process_vm|single copy' "$work/err")" -le 6 ] || complain "a lost single copy is said too often"
done
try "single copy refused from the start" strata-run -n 3 "$hostile" revoke init
try "no rank may look into another" strata-run -n 3 "$hostile" nodump
try "segments by socket" strata-run -n 3 --mca btl_sm_attach socket "$hostile" exchange
try "segments by /proc" strata-run -n 3 --mca btl_sm_attach proc "$hostile" exchange

if unshare --mount true 2>/dev/null; then
    cat >"$work/full.sh" <<END
mount -t tmpfs -o size=64k none /dev/shm || exit 77
dd if=/dev/zero of=/dev/shm/filler bs=1k count=\$1 2>/dev/null
shift
exec "\$@"
END
    try "a tiny /dev/shm" unshare --mount bash "$work/full.sh" 0 strata-run -n 3 "$hostile" exchange
    try "a full /dev/shm" unshare --mount bash "$work/full.sh" 64 strata-run -n 3 "$hostile" exchange
else
    echo "mount namespaces are not allowed here: skipped"
fi

# Too little shared memory: a clear error, or fewer rings.
for limit in 4k 64k 300k 1m; do
    timeout 100 strata-run -n 3 --mca btl_sm_memory_limit $limit "$hostile" exchange >"$work/out" 2>"$work/err"
    status=$?
    if [ $status -ne 0 ]; then
        says "btl_sm|memory"
        [ $status -lt 124 ] || complain "memory limit $limit: status $status"
    fi
    ! grep -qiE 'SIGBUS|bus error|segmentation' "$work/err" || complain "memory limit $limit: crashed"
    echo "memory limit $limit: status $status"
done
# A limit on file size is a limit on memfds too.
timeout 100 strata-run -n 2 bash -c 'ulimit -f 100; exec "$@"' - "$hostile" exchange >/dev/null 2>"$work/err"
status=$?
[ $status -lt 124 ] || complain "file size limit: status $status"
says "ulimit -f"
echo "file size limit: status $status"

if unshare --pid --fork true 2>/dev/null; then
    try "each rank in a PID namespace of its own" strata-run -n 2 unshare --pid --fork "$hostile" exchange
    cat >"$work/some.sh" <<'END'
[ "${PMIX_RANK:-0}" = 1 ] && exec unshare --pid --fork "$@"
exec "$@"
END
    try "one rank in another PID namespace" strata-run -n 3 bash "$work/some.sh" "$hostile" exchange
else
    echo "PID namespaces are not allowed here: skipped"
fi
finish
