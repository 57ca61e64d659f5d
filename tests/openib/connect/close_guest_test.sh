#!/bin/bash
# Connections that come and go on Soft-RoCE with one packet of a hundred lost each way, acknowledgements of last words among
# them: no peer is taken for dead.
. "$STRATA_SOURCE/tests/guest/lib.sh"

cat >"$work/lossy" <<'END_OF_SCRIPT'
# Rank 0 has a device of its own: what one device sends to itself is not lost.
printf '#!/bin/bash\nexport STRATA_MCA_btl_openib_devices=rxe$((PMIX_RANK > 0))\nexec "$@"\n' >/tmp/own
chmod +x /tmp/own
timeout -k 2 400 strata-run -n 3 --report-transports=json --mca btl openib,self --mca btl_openib_max_connected_peers 1 \
    --mca btl_openib_timeout 12 /tmp/own "$STRATA_BUILD/tests/programs/reconnect" 300 2>/tmp/err
echo "status $?, $(tc -s qdisc show | grep -o 'dropped [0-9]*' | awk '{ n += $2 } END { print n }') packets lost"
grep -v '^{' /tmp/err || true
END_OF_SCRIPT
expect_status 0 "$guest" --netem "loss 1%" bash "$work/lossy"
check "all arrives" grep -Eq "^status 0, [1-9][0-9]+ packets lost" "$work/out"
check "nothing is said" test "$(tail -n 1 "$work/out" | cut -d' ' -f1)" = status
cat "$work/out"
no_files
finish
