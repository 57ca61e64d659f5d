#!/bin/bash
# Two devices, or two ports of one, carry half of the bytes each. Of two devices one at a time loses its port in the middle of
# long and short messages and gets it back: no message is lost. When both have lost it, every rank ends with an error that names
# the peer.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form three six) combinations of devices that cannot be opened"
snapshot
export SOFTHCA_DEVICES=2 SOFTHCA_FABRIC=openib-rails-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"

# ---- without a fault both devices, or both ports of one device, carry half of the bytes or nearly so
for what in "2 1 soft0:1 soft1:1" "1 2 soft0:1 soft0:2"; do
    read -r SOFTHCA_DEVICES SOFTHCA_PORTS first second <<<"$what"
    export SOFTHCA_DEVICES SOFTHCA_PORTS
    begin --report-transports=json
    enough
    failed_at 0
    report modules bytes_sent bytes_got | tee "$work/shares"
    awk -v first="$first" -v second="$second" '{ of[$1] = $2; all += $2 }
        END { exit !(NR == 2 && of[first] > 0.4 * all && of[second] > 0.4 * all && all > 200 * 1048576) }' "$work/shares" ||
        complain "$first and $second do not carry half each: $(cat "$work/shares")"
done
export SOFTHCA_DEVICES=2 SOFTHCA_PORTS=1

# ---- a device that cannot be opened is left out, at one rank or both, or each another one, and named once; requested by name it is an
# error
cat >"$work/faulty" <<'END'
#!/bin/bash
fault=FAULT_$PMIX_RANK
[ -z "${!fault-}" ] || export SOFTHCA_FAULTS=${!fault}
exec "$@"
END
chmod +x "$work/faulty"
left_out() { # PATHS RANK:DEVICE... [-- VARIABLE=VALUE...]
    local paths=$1 left=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do left+=("$1") && shift; done
    try 0 "${@:2}" "${openib[@]}" --report-transports=json --mca btl_openib_connect_timeout_ms 300000 -n 2 "$work/faulty" "$hostile" exchange
    for what in "${left[@]}"; do
        says "strata\[.*:${what%%:*}\].*Cannot allocate memory.* \(${what#*:}:1 is left out\)"
    done
    [ "$(grep -vc '^{' "$work/err")" = ${#left[@]} ] || complain "${*:2}: not one line for each that is left out: $(cat "$work/err")"
    [ "$(count connected)" = $((2 * paths)) ] || complain "${*:2}: $(count connected) ends of connections, not of $paths paths"
}
! full_form || left_out 2
left_out 1 1:soft1 -- FAULT_1='pd 2'
! full_form || left_out 1 1:soft0 -- FAULT_1='pd 1'
left_out 1 0:soft0 1:soft0 -- FAULT_0='pd 1' FAULT_1='cq 1'
left_out 1 0:soft0 1:soft1 -- FAULT_0='pd 1' FAULT_1='pd 2'
! full_form || left_out 1 1:soft1 -- FAULT_1='mr 7'
try 1 FAULT_1='pd 2' "${openib[@]}" --mca btl_openib_devices soft0,soft1 -n 2 "$work/faulty" "$hostile" exchange
says 'openib was asked for and cannot be used: soft1:1: no protection domain'
# A rank that falls back on another transport publishes nothing: the others learn from this that they must fall back, too.
try 0 FAULT_1='pd 2' strata-run --softhca -n 2 --mca btl_openib_devices soft0,soft1 --mca btl_openib_connect_timeout_ms 300000 \
    "$work/faulty" strata-perf ring --check --batches=1 --iters=20
says 'rank 1 has no port to match our soft0:1: not found'

# ---- the first device's port; after it works again the second's; at either rank
begin --mca pml_ob1_path_retry_ms 200
fault "${ranks[0]}" 'port soft0 1 down'
said 2 'path 0 of 2 to rank [01] by openib failed'
fault "${ranks[0]}" 'port soft0 1 up'
said 2 'path 0 of 2 to rank [01] works again'
fault "${ranks[1]}" 'port soft1 1 down'
said 2 'path 1 of 2 to rank [01] by openib failed'
fault "${ranks[1]}" 'port soft1 1 up'
said 2 'path 1 of 2 to rank [01] works again'
enough
failed_at 2

# ---- a device is removed for good
begin
fault "${ranks[1]}" 'device soft0 gone'
said 2 'path 0 of 2 to rank [01] by openib failed'
enough
failed_at 2

# ---- a completion queue is overrun: no completion comes from it any more, so its device is not used or tried again
begin --mca pml_ob1_path_retry_ms 200
fault "${ranks[1]}" 'overrun 20'
said 2 'path [01] of 2 to rank [01] by openib failed'
sleep "$(form 0.7 2)" # three or ten times path_retry_ms; fewer retries on a busy machine make the test weaker, never wrong
enough
failed_at 2
! grep -q 'works again' "$work/err" || complain "a path works again whose completion queue was overrun"

# ---- the same of the only device, with messages kept until a path comes back: none does, and the error says so
SOFTHCA_DEVICES=1 begin --mca pml_ob1_path_keep 1 --mca pml_ob1_path_wait_ms 1000
fault "${ranks[1]}" 'overrun 20'
end nonzero
says 'failed: .*(a completion queue was overrun|it has given up the connection); none of its paths has come back'

# ---- no port is left, and none comes back
begin --mca pml_ob1_path_wait_ms "$(form 500 2000)"
fault "${ranks[0]}" 'port soft0 1 down'
fault "${ranks[0]}" 'port soft1 1 down'
end nonzero
says 'rank [01] on host .* failed: the peer failed: transport retry.*; none of its paths has come back'
finish
