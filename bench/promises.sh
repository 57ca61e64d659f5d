#!/usr/bin/env bash
# What Strata promises in seconds, measured on this machine: promise, bound, median and worst of N, met or missed. No test
# judges by the clock, so this is where these times are looked at: on an idle machine. Exit status 0 when all were measured.
# ROUNDS=10; ONLY=wakes, collectives, connect, miba: these alone.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
rounds=${ROUNDS:-10} programs=$STRATA_BUILD/tests/programs times=$STRATA_BUILD/bench/promise_times
work=$(mktemp -d)
export TMPDIR=$work
trap 'rm -rf "$work"' EXIT
n_rows=0 n_missed=0 n_failed=0
processors=$(nproc) load=$(cut -d' ' -f1 /proc/loadavg)

printf 'Promises about time, %s rounds of each; %s processors, load average %s\n' "$rounds" "$processors" "$load"
if awk -v l="$load" -v p="$processors" 'BEGIN { exit !(l > p / 4) }'; then
    echo "WARNING: this machine is not idle (a load of more than a quarter of its processors): the times below prove nothing."
fi
printf '\n%-66s%10s%12s%12s%7s\n' promise bound median worst N

now() { echo "${EPOCHREALTIME/,/.}"; }
# Milliseconds from A to B.
ms() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f\n", (b - a) * 1000 }'; }
# A line of the table from the figures in $work/figures. The figure that has to be within the bound is the worst, or the median.
row() { # worst|median PROMISE BOUND UNIT
    local judged=$1 what=$2 bound=$3 unit=$4 line
    if [ ! -s "$work/figures" ]; then
        printf '%-66s%10s   not measured: %s\n' "$what" "$bound $unit" "$(head -n 1 "$work/err" 2>/dev/null)"
        n_failed=$((n_failed + 1))
        return
    fi
    n_rows=$((n_rows + 1))
    line=$(sort -g "$work/figures" | awk -v bound="$bound" -v unit="$unit" -v judged="$judged" '
        { v[NR] = $1 }
        END { m = v[int((NR + 1) / 2)]; w = v[NR]
              printf "%9.1f %s%9.1f %s%7d  %s", m, unit, w, unit, NR, (judged == "worst" ? w : m) <= bound ? "met" : "MISSED" }')
    case $line in *MISSED) n_missed=$((n_missed + 1)) ;; esac
    printf '%-66s%10s%s\n' "$what" "$bound $unit" "$line"
    : >"$work/figures"
}
: >"$work/figures"

summary() {
    printf '\n%s promises measured, %s missed, %s not measured\n' "$n_rows" "$n_missed" "$n_failed"
    [ "$n_failed" = 0 ]
    exit
}

softhca=$STRATA_BUILD/softhca/.libs/libsofthca.so
[ -e "$softhca" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 || softhca=

# ---- a member of a collective
# From its death, before the launcher can tell of it, to the end of each other member's call; 999999: it did not end.
members() { # PROMISE BTL KIND COUNT WHEN [SETTING=VALUE...]
    local what=$1 with=() setting
    case $2 in *openib) with=(--softhca) ;; esac
    for setting in "${@:6}"; do with+=(--mca "${setting%%=*}" "${setting#*=}"); done
    for _ in $(seq "$(((rounds + 1) / 2))"); do
        bounded strata-run ${with[@]+"${with[@]}"} --mca btl "$2,self" --keep-going -n 4 "$programs/coll_death" "$3" "$4" 20 "$5" \
            >"$work/out" 2>"$work/err"
        awk '/dies at/ { death = $NF } /the call ended at/ { end[++n] = $NF }
             END { for (i = 1; i <= 3 && death; i++) printf "%.1f\n", i <= n ? (end[i] - death) * 1000 : 999999 }' "$work/out" >>"$work/figures"
    done
    row worst "$what" 2000 ms
}
collectives() {
    local basic=coll_sm_ranks=0 none=coll_arrival_ranks=0 form=coll_arrival_form
    members "coll_basic: a member is killed in an allreduce: calls have ended" sm 3 20000 1 $basic $none
    members "the same in an alltoall" sm 8 20000 1 $basic $none
    members "the same, over tcp" tcp 8 20000 1 $basic $none
    members "coll_sm: killed between steps of an allreduce" sm 3 20000 sm_steps $none coll_sm_read_min=1g
    members "coll_sm: killed while others read its memory" sm 8 20000 sm_reads $none coll_sm_read_min=1k
    members "coll_arrival: killed before an alltoall that others have begun" sm 8 8 away $basic $form=pap_direct
    members "coll_arrival: killed with its adverts out" sm 8 20000 adverts $basic $form=pap_direct coll_arrival_scheme=zcopy
    members "coll_arrival: the leader of a node is killed" sm,tcp 8 8 node_blocks $basic $form=pap_shm_direct mca_base_node=1,2
    members "coll_arrival: the leader is killed amid the pieces of a bcast" sm,tcp 1 20000 pieces_relayed $basic $form=pap_shm_direct \
        mca_base_node=1,2 coll_arrival_piece=4k
    [ -z "$softhca" ] || members "coll_arrival: killed with its adverts out, over openib" openib 8 20000 adverts $basic $form=pap_direct \
        coll_arrival_scheme=zcopy
}
[ "${ONLY-}" != collectives ] || { collectives && summary; }

# ---- errors of strata-miba: the tool ends within five seconds, with this status
miba() { LD_PRELOAD=$softhca SOFTHCA_FABRIC=miba-$$ exec ${limit:+timeout -k 5 "$limit"} "$STRATA_BUILD/strata-miba" "$@"; }
# Of what has just ended: with another status than the wanted one the promise is broken.
figure() { # STATUS WANTED BEGIN
    if [ "$1" = "$2" ]; then ms "$3" "$(now)"; else echo 999999; fi >>"$work/figures"
}
# The other side is sent a signal after a first result.
miba_fault() { # PROMISE SIGNAL ARGS...
    local what=$1 signal=$2 pid begin
    shift 2
    for _ in $(seq "$(((rounds + 1) / 2))"); do
        : >"$work/out"
        miba "$@" --samples 1001 --time 1000 --json >"$work/out" 2>"$work/err" &
        pid=$!
        wait_until file_has "$work/out" '"status": ?"ok"' || { kill -9 $pid; wait $pid; echo 999999 >>"$work/figures"; continue; }
        begin=$(now)
        kill -"$signal" "$(cat "/proc/$pid/task/$pid/children")"
        wait $pid
        figure $? 1 "$begin"
    done
    row worst "$what" 5000 ms
}
miba_error() { # PROMISE STATUS ARGS...
    local what=$1 wanted=$2 begin
    shift 2
    for _ in $(seq "$(((rounds + 1) / 2))"); do
        begin=$(now)
        (limit=60 && miba "$@") >/dev/null 2>"$work/err"
        figure $? "$wanted" "$begin"
    done
    row worst "$what" 5000 ms
}
# The same of a client, beside a server that is started with some settings and, given a signal, sent it.
miba_server() { # PROMISE STATUS SIGNAL SERVER-ARGS -- CLIENT-ARGS
    local what=$1 wanted=$2 signal=$3 server=() pid begin
    shift 3
    while [ "$1" != -- ]; do server+=("$1") && shift; done
    for _ in $(seq "$(((rounds + 1) / 2))"); do
        miba --server --tcp-port 0 ${server[@]+"${server[@]}"} 2>"$work/server" &
        pid=$!
        wait_until file_has "$work/server" 'at port' || { kill -9 $pid; wait $pid; echo 999999 >>"$work/figures"; continue; }
        [ -z "$signal" ] || kill -"$signal" $pid
        begin=$(now)
        (limit=60 && miba "${@:2}" --connect localhost --tcp-port "$(sed -n 's/.*at port //p' "$work/server")") >/dev/null 2>"$work/err"
        figure $? "$wanted" "$begin"
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
    done
    row worst "$what" 5000 ms
}
miba_errors() {
    [ -n "$softhca" ] && [ -x "$STRATA_BUILD/strata-miba" ] || return 0
    local sends=(--op send --transport RC)
    miba_fault "strata-miba: the other side is killed" KILL latency "${sends[@]}"
    miba_fault "the same, while it is waited for by events" KILL events "${sends[@]}" --size 8
    miba_fault "the same in tests that do not need it" KILL qp
    miba_fault "strata-miba: the other side is stopped" STOP latency "${sends[@]}"
    miba_fault "the same in tests that do not need it" STOP qp
    miba_error "strata-miba: nobody listens at the port" 2 latency --connect localhost --tcp-port 1
    miba_server "strata-miba: the server does not answer" 1 STOP -- latency
    miba_server "strata-miba: settings differ" 2 '' --window 32 -- latency --window 16
    miba_error "strata-miba: a file that cannot be written" 1 qp -o "$work/no/such/folder"
    miba_error "strata-miba: a full disk" 1 qp -o /dev/full
} 2>/dev/null # bash tells of killed jobs
[ "${ONLY-}" != miba ] || { miba_errors && summary; }

# ---- a connection
connect() {
    ROUNDS=$rounds bash "$STRATA_SOURCE/bench/promise_connect.sh" >"$work/figures" 2>"$work/err"
    if [ $? = 77 ]; then
        echo "tcp, two machines: $(cat "$work/figures")"
        : >"$work/figures"
    else
        row worst "tcp: two machines, most interfaces lead nowhere: first messages" 1000 ms
    fi
}
[ "${ONLY-}" != connect ] || { connect && summary; }

# ---- a sleeper
# The machine's own wake-up between two processors is the floor: the promise is 20 us, or one and a half times the floor.
within=20
floor() { # WAY
    bounded "$STRATA_BUILD/bench/wake_floor" "$1" $((rounds * 100)) >"$work/figures" 2>"$work/err"
    line=$(sort -g "$work/figures" | awk '{ v[NR] = $1 } END { if (NR) printf "%.1f %.1f %d", v[int((NR + 1) / 2)], v[NR], NR }')
    : >"$work/figures"
    [ -n "$line" ] || { echo "the bare machine by $1: not measured: $(head -n 1 "$work/err")" && return; }
    read -r median worst n <<<"$line"
    printf '%-66s%10s%9s us%9s us%7s\n' "the bare machine: a process that sleeps is woken by $1" floor "$median" "$worst" "$n"
    within=$(awk -v m="$median" 'BEGIN { printf "%d", (m * 1.5 > 20 ? m * 1.5 + 0.5 : 20) }')
}
wakes() { # TRANSPORTS WHAT STRATA-RUN-ARGUMENTS...
    local transports=$1 what=$2
    shift 2
    bounded strata-run -n 2 "$@" --mca btl "$transports" "$times" wake $((rounds * 100)) >"$work/figures" 2>"$work/err"
    row median "$what" "$within" us
    sed "s/^/    /" "$work/err"
}
floor socket
floor pipe
floor eventfd
[ -z "$softhca" ] || wakes openib,self "openib: a rank that sleeps in a receive is woken by the message" --softhca
floor tcp
wakes tcp,self "tcp: the same" --mca mca_base_spin 100 # a poll is a system call, and 10,000 of them outlast the pause
floor futex
wakes sm,self "sm: the same"
wakes sm,self "sm: the same, ranks that are not bound" --bind-to none
bounded strata-run -n 2 --mca btl sm,self "$times" threads $((rounds * 50)) >"$work/figures" 2>"$work/err"
row median "sm: one of two threads that sleep is woken by its message" "$within" us
bounded strata-run -n 1 --bind-to none "$times" self $((rounds * 100)) >"$work/figures" 2>"$work/err"
row median "self: a thread that sleeps is woken by another's message" "$within" us
[ "${ONLY-}" != wakes ] || summary

# ---- strata-run
for _ in $(seq "$rounds"); do
    begin=$(now)
    bounded strata-run -n 4 true 2>"$work/err"
    [ "$status" = 0 ] && ms "$begin" "$(now)" >>"$work/figures"
done
row worst "strata-run -n 4 true: from its start to its end" 1000 ms

# One of four ranks writes the time and fails; the others would sleep for an hour.
dies() { # PROMISE COMMAND-OF-THE-RANK COMMAND-OF-THE-OTHERS
    for _ in $(seq "$rounds"); do
        rm -f "$work/at"
        # shellcheck disable=SC2016 # of the ranks' shell
        bounded strata-run -n 4 bash -c 'if [ $PMIX_RANK = 1 ]; then sleep 0.2; echo $EPOCHREALTIME >"$0"; eval "$1"; fi; eval "$2"' \
            "$work/at" "$2" "$3" >/dev/null 2>"$work/err"
        [ ! -s "$work/at" ] || ms "$(tr , . <"$work/at")" "$(now)" >>"$work/figures"
    done
    row worst "$1" 1000 ms
}
# shellcheck disable=SC2016 # of the ranks' shell
dies "a rank is killed by signal 9: the job has ended" 'kill -9 $$' 'exec sleep 3600'
dies "a rank exits with status 3: the job has ended" 'exit 3' 'exec sleep 3600'
dies "the same, and the others ignore SIGTERM" 'exit 3' 'trap "" TERM; sleep 3600'
for _ in $(seq "$rounds"); do
    bounded strata-run -n 4 "$programs/hostile" die 1 9 >/dev/null 2>"$work/err"
    end=$(now) at=$(sed -n 's/.*dying at \([0-9.]*\).*/\1/p' "$work/err")
    [ -z "$at" ] || ms "$at" "$end" >>"$work/figures"
done
row worst "a rank is killed in the middle of 64 MiB: the job has ended" 1000 ms
for _ in $(seq "$rounds"); do
    begin=$(now)
    bounded strata-run -n 3 "$programs/launch_probe" abort 2 6 >/dev/null 2>"$work/err"
    [ "$status" = 6 ] && ms "$begin" "$(now)" >>"$work/figures"
done
row worst "strata_abort by one of 3 ranks: from the job's start to its end" 1000 ms
for _ in $(seq "$rounds"); do
    begin=$(now)
    bounded strata-run -n 2 --timeout 0.5 sleep 3600 2>"$work/err"
    [ "$status" = 124 ] && ms "$(awk -v a="$begin" 'BEGIN { printf "%.6f", a + 0.5 }')" "$(now)" >>"$work/figures"
done
row worst "--timeout 0.5: the job ends later than that by" 1000 ms

# A rank that has ended counts as gone before whoever has inherited it reaps it.
no_ranks() {
    local rank state
    while read -r rank; do
        { read -r _ _ state _ <"/proc/$rank/stat"; } 2>/dev/null && [ "$state" != Z ] && return 1
    done < <(sed -n 's/^ready //p' "$work/out")
    return 0
}
# strata-run in the background is sent signals when both ranks are there.
signalled() { # PROMISE COMMAND-OF-A-RANK SIGNAL...
    local what=$1 command=$2 pid begin
    shift 2
    for _ in $(seq "$rounds"); do
        : >"$work/out"
        strata-run -n 2 bash -c "echo ready \$\$; $command" >"$work/out" 2>"$work/err" &
        pid=$!
        wait_until lines_are "$work/out" ready 2 || { kill -9 $pid && continue; }
        begin=$(now)
        for signal in "$@"; do kill -"$signal" $pid; sleep 0.02; done
        wait $pid 2>/dev/null
        # Only strata-run's guard is left to end the ranks when it was killed itself.
        wait_until no_ranks || continue
        ms "$begin" "$(now)" >>"$work/figures"
    done
    row worst "$what" 1000 ms
}
signalled "SIGTERM to strata-run: the job has ended" 'exec sleep 3600' TERM
signalled "SIGINT to strata-run: the job has ended" 'exec sleep 3600' INT
signalled "SIGTERM twice, and the ranks ignore it: the job has ended" 'trap "" TERM; sleep 3600; sleep 3600' TERM TERM
signalled "strata-run is killed by signal 9: no rank is left" 'exec sleep 3600' KILL 2>/dev/null # bash tells of it

# ---- a dead peer
survivors() { # PROMISE BOUND COMMAND...: how late each survivor was told
    local what=$1 bound=$2
    shift 2
    for _ in $(seq "$rounds"); do
        bounded "$@" >"$work/out" 2>"$work/err"
        sed -n 's/.*was told after \([0-9]*\) ms$/\1/p' "$work/out" >>"$work/figures"
    done
    row worst "$what" "$bound" ms
}
for when in before connecting heard connected sending receiving; do
    survivors "sm, --keep-going, peer killed ($when): survivors are told" 1000 \
        strata-run --keep-going --mca btl sm,self -n 3 "$programs/peer_death" $when
done
[ -z "$softhca" ] || for when in before sending receiving; do
    survivors "openib, --keep-going, peer killed ($when): survivors are told" 1000 \
        strata-run --keep-going --softhca --mca btl openib,self -n 3 "$programs/peer_death" $when
done
if command -v mpirun.openmpi >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    silent=(mpirun.openmpi --oversubscribe --enable-recovery -x STRATA_MCA_mca_base_fence_after_failure_ms=500 -n 3)
    for when in before heard sending; do
        survivors "sm, a launcher that tells nobody ($when): survivors are told" 1000 \
            "${silent[@]}" -x STRATA_MCA_btl=sm,self "$programs/peer_death" $when
    done
    # keepalive_ms, and the retries of the device, 0.47 s.
    [ -z "$softhca" ] || for when in heard sending; do
        survivors "openib, the same, keepalive_ms=1000 ($when): survivors are told" 1500 "${silent[@]}" \
            -x STRATA_MCA_btl=openib,self -x STRATA_MCA_btl_openib_keepalive_ms=1000 -x LD_PRELOAD="$softhca" \
            -x SOFTHCA_FABRIC="promises-$$" "$programs/peer_death" $when
    done
fi

collectives
connect
miba_errors

# ---- first messages
firsts() { # TRANSPORT STRATA-RUN-ARGUMENTS...
    local transport=$1
    shift
    for _ in $(seq "$(((rounds + 2) / 3))"); do
        bounded strata-run -n 64 "$@" --mca btl "$transport,self" "$times" first >>"$work/figures" 2>"$work/err"
    done
    row worst "$transport: 64 ranks, first messages of all to all: a rank has got all" 1000 ms
}
firsts sm
[ -z "$softhca" ] || firsts openib --softhca

summary
