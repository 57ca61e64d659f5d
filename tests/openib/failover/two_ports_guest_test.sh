#!/bin/bash
# Two ports on a real kernel's verbs: two ranks of one guest, each with two devices of its own, of which each has a link to its
# counterpart. Both links carry half of the bytes. One link after the other is taken down in the middle of long and short messages
# and up again: nothing is lost, and the path works again. When both are down, every rank ends with an error that names the peer.
# guest: --four-devices
. "$STRATA_SOURCE/tests/guest/in_guest.sh"
. "$STRATA_SOURCE/tests/hostile/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
openib=(strata-run --mca btl "openib,self")
snapshot
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
# An emulated processor fills and checks some ten MiB a second, and starts some ten programs.
stream_mib=$(form 8 64) said_every=0.3
own=$work/own
printf '#!/bin/bash\nexport STRATA_MCA_btl_openib_devices=rxe$((PMIX_RANK %% 2)),rxe$((2 + PMIX_RANK %% 2))\nexec "$@"\n' >"$own"
chmod +x "$own"
link_down() { ip link set v$((2 * $1)) down; } # NUMBER
link_up() {
    ip link set v$((2 * $1)) up
    ip route replace "10.77.$1.11" dev v$((2 * $1)) table $((100 + 2 * $1))
}
crossed() { # NUMBER: MiB both ways
    local tx rx statistics=/sys/class/net/v$((2 * $1))/statistics
    read -r tx <$statistics/tx_bytes
    read -r rx <$statistics/rx_bytes
    echo $(((tx + rx) / 1048576))
}

# Soft-RoCE answers a request that is sent again with "remote invalid request" now and then. On a busy machine acknowledgements come
# later than the default time-out of 67 ms, so it is 4 s here: the path shall not fail by that.
first=$(crossed 0) second=$(crossed 1)
begin --report-transports=json --mca btl_openib_timeout 20 "$own"
until [ $(($(crossed 0) - first + $(crossed 1) - second)) -gt "$(form 30 200)" ] || ! kill -0 $job; do sleep 0.5; done # MiB
enough
failed_at 0
first=$(($(crossed 0) - first)) second=$(($(crossed 1) - second))
echo "links carried $first and $second MiB"
all=$((first + second)) # both carry half
{ [ $((10 * first)) -gt $((4 * all)) ] && [ $((10 * second)) -gt $((4 * all)) ]; } || complain "not half and half"
report() { python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" "$@"; }
report modules bytes_sent bytes_got

begin --mca pml_ob1_path_retry_ms 200 --mca btl_openib_timeout 14 "$own"
for down in $(form 1 "1 0"); do
    link_down $down
    said 2 "path $down of 2 to rank [01] by openib failed"
    link_up $down
    said 2 "path $down of 2 to rank [01] works again"
done
enough
failed_at 2

begin --mca pml_ob1_path_wait_ms 2000 --mca btl_openib_timeout 14 "$own"
link_down 0
link_down 1
end nonzero
says 'rank [01] on host .* failed: the peer failed: .*; none of its paths has come back'
finish
