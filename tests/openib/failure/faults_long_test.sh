#!/bin/bash
# btl_openib in trouble, on softhca: no device, limits, objects that cannot be made, bad settings, lost traffic, dead
# peers. A run succeeds, or ends with one message that says why; it never hangs, crashes or leaves anything behind.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=600
export HOSTILE_TIMEOUT=500
snapshot
say_form "$(form "7 of 14" "14") objects that cannot be made"

# ---- no device: a message where openib is requested by name, else another transport is used silently
try 1 strata-run -n 2 --mca btl openib,self "$hostile" exchange
says 'openib was asked for and cannot be used: there is no InfiniBand or RoCE device on this machine'
try 0 strata-run -n 2 "$hostile" exchange
unsaid "no device, not asked for"
export SOFTHCA_FAULTS='port soft0 1 down'
try 1 "${openib[@]}" -n 2 "$hostile" exchange
says 'no port that may be used is active and can be opened: soft0:1 is down'
try 0 strata-run --softhca -n 2 "$hostile" exchange
unsaid "no active port, not asked for"
unset SOFTHCA_FAULTS
try 1 "${openib[@]}" -n 2 --mca btl_openib_devices soft7 "$hostile" exchange
says 'btl_openib_devices=soft7 leaves none of the ports here: soft0:1'
try 0 "${openib[@]}" -n 2 --mca btl_openib_devices 'soft7:2,soft0' "$hostile" exchange
says 'soft7:2,soft0 names what is not on this machine: soft7:2; there are: soft0:1'
try 2 "${openib[@]}" -n 2 --mca btl_openib_devices 'soft0,^soft1' "$hostile" exchange
says 'soft0,\^soft1: a list either names devices or excludes them'

# ---- little memory may be registered; the message names the process's own limit, where it has one
lockable=$(ulimit -S -l)
ulimit -S -l 8192 2>/dev/null # fails where the limit is lower already
try 1 SOFTHCA_MEMLOCK=64k "${openib[@]}" -n 2 "$hostile" exchange
says 'no registered buffers can be made: Cannot allocate memory; ulimit -l is [0-9]+ KiB, raise it'
try 0 SOFTHCA_MEMLOCK=64k strata-run --softhca -n 2 --mca btl_openib_priority 30 "$hostile" exchange
unsaid 'a transport that nobody asked for'
try 0 SOFTHCA_MEMLOCK=64k strata-run --softhca -n 2 --mca btl_openib_priority 30 --mca mca_base_verbose 2 "$hostile" exchange
says 'component btl_openib skipped: .*; ulimit -l is [0-9]+ KiB, raise it'
if ulimit -S -l unlimited 2>/dev/null; then
    try 1 SOFTHCA_MEMLOCK=64k "${openib[@]}" -n 2 "$hostile" exchange
    says 'no registered buffers can be made: Cannot allocate memory$'
fi
ulimit -S -l "$lockable"
# The device has no more of something: the message names it, and not the limit on memory.
ulimit -S -l 8192 2>/dev/null
for most in "CQ 1 completion queues" "SRQ 1 shared receive queues" "MR 3 memory regions"; do
    read -r name number kind <<<"$most"
    try 1 "SOFTHCA_MAX_$name=$number" "${openib[@]}" -n 2 "$hostile" exchange
    says "can be made: Cannot allocate memory; the device has $number $kind for all processes \(max_${name,,}\)"
done
ulimit -S -l "$lockable"
for bytes in $(form 1m "1m 4m"); do # enough to begin, too little for long messages
    try 0 SOFTHCA_MEMLOCK=$bytes "${openib[@]}" -n 2 "$hostile" exchange
    says 'long messages go in fragments'
done

# ---- the Nth object cannot be made: one that is needed from the start is named and ends the job; later ones are tried again, or
# not needed
short=(strata-perf latency --check --batches=1 --iters=3 --sizes=8:1m)
full_form && faults=('qp 1' 'mr 1' 'mr 3' 'mr 6' 'cq 1' 'cq 2' 'cq 3' 'srq 1' 'srq 2' 'pd 1') ||
    faults=('qp 1' 'mr 6' 'cq 3' 'srq 2' 'pd 1')
for fault in "${faults[@]}"; do
    try 1 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 2 "${short[@]}"
    came failed 1 2 "$fault"
    said=$(grep -c 'cannot be used: soft0:1: no .* can be made: Cannot allocate memory' "$work/err")
    [ "$said" = 1 ] || [ "$said" = 2 ] || complain "$fault: $said messages of two ranks"
done
full_form && faults=('qp 2' 'qp 3' 'mr 7' 'mr 8') || faults=('qp 2' 'mr 7')
for fault in "${faults[@]}"; do
    try 0 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 2 "${short[@]}"
    came failed 1 2 "$fault"
    unsaid "$fault"
done

# ---- settings
try 2 "${openib[@]}" -n 2 --mca btl_openib_receive_queues S,8k "$hostile" exchange
says "btl_openib_receive_queues, high priority: expected ',' and COUNT at the end"
# One rank has other settings than the rest.
cat >"$work/differently" <<'END'
#!/bin/bash
[ "$PMIX_RANK" != 1 ] || export STRATA_MCA_btl_openib_receive_queues=S,4k,4096,16,32:S,16k,1024,8,16
exec "$@"
END
chmod +x "$work/differently"
try 1 "${openib[@]}" -n 3 "$work/differently" "$hostile" exchange
says 'rank [012] has receive_queues with buffers of [0-9]+ and [0-9]+ bytes, rank [012] \(here\) of [0-9]+ and [0-9]+: they must be'
says 'no transport reaches rank'
try 0 strata-run --softhca -n 3 --mca btl openib,sm,self "$work/differently" strata-perf ring --check --batches=1 --iters=20
says 'they must be the same in all of the job'

# ---- traffic is lost and late, also while connections are made
full_form && faults=('drop 2' 'drop 3' 'delay 2000' 'rnr 50') || faults=('drop 3' 'delay 500' 'rnr 50')
for fault in "${faults[@]}"; do
    try 0 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 3 "$hostile" exchange
    unsaid "$fault"
    case $fault in drop*) came dropped 200 1000000 "$fault" && came datagrams 1 100000 "$fault" ;; esac
done
try nonzero SOFTHCA_FAULTS='overrun 50' "${openib[@]}" -n 2 "$hostile" exchange
says 'a completion queue was overrun|CQ error'
try nonzero SOFTHCA_FAULTS='connections down' "${openib[@]}" -n 2 "$hostile" exchange
says 'the peer failed: transport retry counter exceeded'

# ---- datagrams from outside the job, while it connects and runs
if [ -x "$STRATA_BUILD/tests/openib/connect/forge_datagrams" ]; then
    export SOFTHCA_FABRIC=openib-forged-$$
    forge() { LD_PRELOAD=$STRATA_BUILD/softhca/.libs/libsofthca.so "$STRATA_BUILD/tests/openib/connect/forge_datagrams" "$@" >"$work/forger"; }
    forge 0 "$(form 3 15)" & # before the job starts, and while it connects
    forger=$!
    in_background "${openib[@]}" --report-transports=json -n 3 "$hostile" streams "$work/enough"
    until grep -q running "$work/err" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    wait $forger || complain "the forger failed"
    forge 0 15 || complain "the forger failed"
    touch "$work/enough"
    wait $job || complain "the job failed while datagrams were forged"
    ! grep -v -e '^running$' -e '^{' "$work/err" || complain "forged datagrams cause messages"
    at_least refused 30 'forged datagrams' # 15 to each of three ranks that run, and those before
    awk '{ exit !($2 > 30000) }' "$work/forger" || complain "too little was forged: $(cat "$work/forger")"
    unset SOFTHCA_FABRIC
else
    complain "the forger was not built"
fi

# ---- peers are killed: in the middle of 64 MiB, all at once, before anything was sent; a peer exits early
crash_wanted=1
try 137 "${openib[@]}" -n 3 "$hostile" die 1 9 openib-die
says 'rank 1 .*killed by signal 9'
nothing_left openib-die
try 137 "${openib[@]}" -n 3 "$hostile" die -1 9 openib-die
nothing_left openib-die
try 3 "${openib[@]}" -n 3 "$hostile" exit 2 3 openib-exit
says 'rank 2 .*exited with status 3 before finalize'
nothing_left openib-exit
cat >"$work/shortlived" <<'END'
#!/bin/bash
# Rank 1 is killed so many milliseconds after its start: before, during or after connecting.
[ "$PMIX_RANK" != 1 ] || { (sleep "$LIFE" && kill -9 $$) & }
exec "$@"
END
chmod +x "$work/shortlived"
for life in $(form '0.03 0.1' '0.03 0.1 0.2'); do
    try 137 LIFE=$life "${openib[@]}" -n 3 "$work/shortlived" "$hostile" hold openib-life
    says 'rank 1 .*killed by signal 9'
    nothing_left openib-life
done
crash_wanted=

# ---- a port goes down under load: no message is lost when it comes back before the device gives up; else the job ends with an error
port_down() { # WANTED-STATUS PARAMETERS...: the port comes back after a moment where the job is to succeed, else never
    local rank
    export SOFTHCA_FABRIC=openib-$$-port-$1
    rm -f "$work/enough"
    in_background timeout -k 2 $limit "${openib[@]}" -n 2 "${@:2}" "$hostile" long "$work/enough"
    until grep -q 'running' "$work/err" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    rank=$(pgrep -f "^[^ ]*hostile long $work/enough" | head -1)
    softhca-stat --fault "$rank" 'port soft0 1 down' >"$work/stat" 2>&1 || { complain "no rank with a port: $(cat "$work/stat")"; touch "$work/enough"; }
    if [ "$1" = 0 ]; then
        sleep 0.2
        softhca-stat --fault "$rank" 'port soft0 1 up' >"$work/stat" 2>&1 || complain "no rank with a port: $(cat "$work/stat")"
        touch "$work/enough"
    fi
    wait $job
    status=$?
    if [ "$1" = 0 ]; then
        [ $status = 0 ] || complain "status $status after a port was down for a moment"
    else
        [ $status != 0 ] && [ $status != 124 ] || complain "status $status after a port went down for good"
        says 'rank [01] on host .* failed: the peer failed: (transport retry|a control message)'
        says 'port error'
    fi
    unset SOFTHCA_FABRIC
    nothing_left "$work/enough"
}
port_down 0 --mca btl_openib_timeout 19 # the device gives up after 15 s, not 0.5 s: a busy machine makes the moment longer
port_down nonzero

# ---- unexpected messages
try 0 "${openib[@]}" -n 2 "$hostile" unexpected "$(form 20000 100000)"
unsaid "unexpected messages"

# ---- a receiver is stopped, and continues
try 0 "${openib[@]}" -n 3 "$hostile" stop 1 2 openib-stop
unsaid "a receiver that was stopped"
nothing_left openib-stop
finish
