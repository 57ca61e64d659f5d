#!/bin/bash
# Two rails on a real kernel's verbs: two ranks of one guest, each with two devices of its own, of which each has a link to its
# counterpart. Both links carry half of the bytes. One link after the other is taken down in the middle of long and short messages
# and up again: nothing is lost, and the path works again. When both are down, every rank ends with an error that names the peer.
. "$STRATA_SOURCE/tests/guest/lib.sh"

cat >"$work/rails" <<'END_OF_SCRIPT'
. "$STRATA_SOURCE/tests/hostile/lib.sh"
openib=(strata-run --mca btl openib,self)
snapshot
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
own=$work/own
printf '#!/bin/bash\nexport STRATA_MCA_btl_openib_devices=rxe$((PMIX_RANK %% 2)),rxe$((2 + PMIX_RANK %% 2))\nexec "$@"\n' >"$own"
chmod +x "$own"
link_down() { ip link set v$((2 * $1)) down; } # NUMBER
link_up() {
    ip link set v$((2 * $1)) up
    ip route replace "10.77.$1.11" dev v$((2 * $1)) table $((100 + 2 * $1))
}
crossed() { cat /sys/class/net/v$((2 * $1))/statistics/{tx,rx}_bytes | awk '{ n += $1 } END { print int(n / 1048576) }'; }

first=$(crossed 0) second=$(crossed 1)
begin --report-transports=json "$own"
sleep 3
enough
failed_at 0
echo "links carried $(($(crossed 0) - first)) and $(($(crossed 1) - second)) MiB"
report() { python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" "$@"; }
report modules bytes_sent bytes_got

begin --mca pml_ob1_path_retry_ms 200 --mca btl_openib_timeout 14 "$own"
for down in 1 0; do
    link_down $down
    said 2 "path $down of 2 to rank [01] by openib failed"
    link_up $down
    said 2 "path $down of 2 to rank [01] works again"
done
enough
failed_at 2
echo "each link was down once"

begin --mca pml_ob1_path_wait_ms 2000 --mca btl_openib_timeout 14 "$own"
link_down 0
link_down 1
end nonzero
says 'rank [01] on host .* failed: the peer failed: .*; none of its paths has come back'
finish
END_OF_SCRIPT
expect_status 0 "$guest" --four-devices bash "$work/rails"
out_has "^all passed$"; out_has "^each link was down once$"
check "both links carry half, 100 MiB and more" awk '/^links carried/ { found = 1
    all = $3 + $5; exit !(all > 200 && $3 > 0.4 * all && $5 > 0.4 * all) } END { exit !found }' "$work/out"
cat "$work/out"
no_files
finish
