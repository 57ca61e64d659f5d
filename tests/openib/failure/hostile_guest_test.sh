#!/bin/bash
# Ranks killed in the middle of long messages, ranks that end early or are stopped, messages that nobody expects, a cable pulled,
# and an interface taken down below its device, on a real kernel's verbs: the ranks that are left are told and go on, and when the
# trouble only lasts a while nothing is lost. Two devices between which there is a link.
# guest: --two-devices
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
# 0.3 s, seven times: an emulated device answers late where the machine below is busy.
export STRATA_MCA_btl_openib_timeout=16
programs=$STRATA_BUILD/tests/programs
own_devices 'rxe$((PMIX_RANK % 2))'

job() { # STATUS WHAT arguments of strata-run...
    expect_status "$1" "${openib[@]}" "${@:3}"
    echo "$2: status $status, $(grep -c 'goes on$' "$work/out") go on, $(wc -l <"$work/err") lines said, $SECONDS s since the start"
    sed 's/^/    /' "$work/out" "$work/err"
}
says_nothing() { check "nothing is said" test ! -s "$work/err"; }
out_of_order() { cat /sys/class/infiniband/rxe[01]/ports/1/hw_counters/out_of_seq_request | awk '{ n += $1 } END { print n }'; }
cable() { # PERCENT lost
    printf 'qdisc replace dev v%d root netem loss %d%%\n' 0 "$1" 1 "$1" | tc -batch -
}
# Waits until the job in the background runs.
runs() {
    for _ in $(seq 1200); do
        ! grep -q '^running' "$work/err" || break
        sleep 0.1
    done
}
# As soon as the job says that it runs, the cable is out, for so long or until it ends. A busy guest was seen to take 2 s for
# the 0.2 s: there the device tries for 7 s.
pulled() { # [SECONDS]
    rm -f "$work/enough"
    env ${1:+STRATA_MCA_btl_openib_timeout=18} "${openib[@]}" -n 2 "$work/own" "$programs/hostile" long "$work/enough" &
    runs
    cable 100
    if [ -n "${1-}" ]; then sleep "$1" && cable 0; touch "$work/enough"; fi
    wait $!
}
# The interface below one of the devices is taken down, for longer than the device tries, and up again: events of the device say
# so, the connection fails, and messages that are kept are sent again by another. The other device loses its carrier meanwhile.
interface_down() { # SECONDS
    rm -f "$work/enough"
    env STRATA_MCA_btl_openib_timeout=14 "${openib[@]}" --report-transports=json -n 2 --mca pml_ob1_path_keep 1 \
        --mca pml_ob1_path_retry_ms 50 "$work/own" "$programs/hostile" long "$work/enough" &
    runs
    ip link set v0 down
    sleep "$1"
    ip link set v0 up
    ip route replace 10.77.0.11 dev v0 table 100
    touch "$work/enough"
    wait $!
}

expect_status 0 interface_down 8
for what in error active; do
    n=$(grep -c "rxe[01]:1: port $what" "$work/err")
    check "both ports say $what, $n times" test "$n" -ge 2
done
n=$(python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" sum connections)
check "connections are made again: $n" test "$n" -ge 4
for when in $(form sending "sending receiving"); do
    job 137 "killed, $when" --keep-going -n 3 "$work/own" "$programs/peer_death" "$when"
    check "killed $when: two are told and go on" test "$(grep -c 'goes on$' "$work/out")" = 2
done
# In one guest the two ends are two devices, so that all of it goes over the link.
if full_form; then
    job 0 "unexpected" -n 2 "$work/own" "$programs/hostile" unexpected 5000
    says_nothing
    job 3 "exit" -n 2 "$work/own" "$programs/hostile" exit 1 3
    err_has "rank 1 .* exited with status 3 before finalize"
fi
job 137 "die" -n 2 "$work/own" "$programs/hostile" die 1 9
err_has "rank 1 .*killed by signal 9"
# A time-out that is not one has reads answered anew, of which Soft-RoCE may lose the connection (docs/design/btl_openib.md,
# "RDMA"): 1 s here. Stopped for so many seconds.
before=$(out_of_order)
job 0 "stopped under load" --mca btl_openib_timeout 18 -n 4 "$work/own" "$programs/traffic" mixed 100000 40 2 "$(form 4 10)"
says_nothing
check "it was stopped for so long" grep -Eq "^ *mixed 100000 [0-9]+ [0-9]{$(form 7 8),}" "$work/out"
check "the link keeps order" test $(($(out_of_order) - before)) = 0
expect_status 0 pulled 0.2
expect_status 1 pulled
check "the peer is named" grep -Eq "rank [01] on host node1 failed: the peer failed" "$work/err"
finish
