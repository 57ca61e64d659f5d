#!/bin/bash
# Ranks that may not look into each other's memory, from the start or from some moment on; other PID namespaces; little or
# no shared memory. Data is right all the same, or the error has a name.
. "$STRATA_SOURCE/tests/hostile/lib.sh"

try() { # DESCRIPTION COMMAND...: status 0, or 77: skipped. True when it ran
    local what=$1 status
    shift
    bounded "$@" >"$work/out" 2>"$work/err"
    case $status in
    0) echo "$what: ok" ;;
    77) echo "$what: skipped ($(head -1 "$work/err"))" ;;
    *) complain "$what: status $status: $*" ;;
    esac
    ! grep -qiE 'SIGBUS|bus error|segmentation' "$work/err" || complain "crashed: $*"
    [ "$status" = 0 ]
}
# A single copy that met the refusal is said, once by each rank for each peer.
loss_is_said() {
    says 'single copy with rank [012] no longer works; its messages are copied through shared memory'
    [ -z "$(grep 'no longer works' "$work/err" | sort | uniq -d)" ] || complain "a lost single copy is said twice"
}
reported() { # FIELD: so reports each of three ranks of both others
    [ "$(grep -o "\"$1\"" "$work/err" | wc -l)" = 6 ] || complain "not all ranks report $1: $(cut -c 1-600 "$work/err")"
}
report=--report-transports=json

for mode in auto one_sided cooperative; do
    m="--mca btl_sm_single_copy $mode --mca btl_sm_rdma_min 16k"
    try "single copy $mode" strata-run -n 3 $m "$hostile" exchange
    try "single copy $mode refused in mid-run" strata-run -n 3 $m "$hostile" revoke run && loss_is_said
    try "single copy $mode refused in mid-run to one rank" strata-run -n 3 $m "$hostile" revoke run 1 && loss_is_said
done
try "single copy refused from the start" strata-run -n 3 $report "$hostile" revoke init && reported 'single_copy":"off'
try "no rank may look into another" strata-run -n 3 $report "$hostile" nodump && reported 'single_copy":"off'
for way in socket proc; do
    try "segments by $way" strata-run -n 3 $report --mca btl_sm_attach $way "$hostile" exchange && reported "attached_by\":\"$way"
done

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

# Too little shared memory. A rank of three needs 20 KiB for its segment, 16.5 KiB for each cell, which a fragment of a
# kilobyte takes first, and 20 KiB for the first part of a ring, which a peer gets by its eighth message and which grows with
# its messages. Without room for segment and cell the job ends and says which limit is too low; without room for a ring, or
# for what a message needs of it, all goes by the queue, as each rank says once.
limited() { # WANTED-STATUS LIMIT: over sm and self alone
    run "$1" strata-run -n 3 --mca btl sm,self --mca btl_sm_memory_limit "$2" --report-transports=json \
        --mca mca_base_verbose 3 "$hostile" exchange
    echo "memory limit $2: $(grep -o '"path":"[a-z]*"' "$work/err" | sort | uniq -c | tr -s ' \n' ' ')"
}
paths() { # KIND: each rank reports this path to both others, and no other
    [ "$(grep -o "\"path\":\"$1\"" "$work/err" | wc -l) $(grep -o '"path":"' "$work/err" | wc -l)" = "6 6" ] ||
        complain "not all messages went by $1"
}
no_ring='btl_sm: no memory for another ring \(File too large\); the shared queue is used$'
small_ring='btl_sm: no memory for more of a ring \(File too large\)$'
limited 1 4k
says 'component btl sm was asked for and cannot be used: no shared memory for the segment: btl_sm_memory_limit'
run 1 strata-run -n 3 --mca btl_sm_memory_limit 4k "$hostile" exchange
says 'no transport reaches rank [012] on host .*sm: no shared memory for the segment: btl_sm_memory_limit'
limited 1 32k
says 'btl_sm could not reserve 16512 bytes of shared memory: File too large\. .*btl_sm_memory_limit'
says 'no transport reaches rank [012] on host .* sm: out of memory'
limited 0 48k
paths queue
lines_are "$work/err" "$no_ring" 3 || complain "memory limit 48k: not every rank says once that it has no ring"
limited 0 64k
paths queue
lines_are "$work/err" "$small_ring" 3 || complain "memory limit 64k: not every rank says once that its ring stays too small"
limited 0 1m
paths ring
lines_are "$work/err" "$no_ring|$small_ring" 0 || complain "a megabyte is too little for rings"
# A limit on file size is a limit on memfds too: one of 100 KiB ends the job, one above the segment's size does nothing.
for limit in 100:1 10000:0; do
    run ${limit#*:} strata-run -n 2 bash -c "ulimit -f ${limit%:*}"'; exec "$@"' - "$hostile" exchange
    [ $limit = 10000:0 ] ||
        says 'no transport reaches rank [01] on host .*sm: no shared memory for the segment: .*\(ulimit -f\)'
done

if unshare --pid --fork true 2>/dev/null; then
    try "each rank in a PID namespace of its own" strata-run -n 2 unshare --pid --fork "$hostile" exchange
    cat >"$work/some.sh" <<'END'
[ "${PMIX_RANK:-0}" = 1 ] && exec unshare --pid --fork "$@"
exec "$@"
END
    try "one rank in another PID namespace" strata-run -n 3 bash "$work/some.sh" "$hostile" exchange
    # Without a way to the other's memory all goes by TCP, where that is there.
    try "no way to attach" strata-run -n 3 $report --mca btl sm,tcp,self --mca btl_sm_attach proc unshare --pid --fork "$hostile" exchange &&
        reported 'by":"tcp'
else
    echo "PID namespaces are not allowed here: skipped"
fi
cat >"$work/container.sh" <<'END'
#!/bin/bash
mount -t proc none /proc && mount -t tmpfs none /dev/shm && hostname "container$PMIX_RANK" || exit 77
exec "$@"
END
if unshare --pid --fork --mount --uts --ipc true 2>/dev/null; then
    container=(unshare --pid --fork --mount --uts --ipc bash "$work/container.sh")
    try "each rank in a container, with processes, shared memory and a host name of its own" \
        strata-run -n 3 $report "${container[@]}" "$hostile" exchange && reported 'by":"sm'
else
    echo "containers are not allowed here: skipped"
fi
finish
