#!/bin/bash
# Messages up to 4 MiB both ways while one packet of a hundred is lost each way, on Soft-RoCE: they arrive, whole, and soon. By
# get and by put, with shorter ones by sends.
. "$STRATA_SOURCE/tests/guest/lib.sh"

cat >"$work/lossy" <<'END_OF_SCRIPT'
# Each rank has a device of its own: what one device sends to itself is not lost.
printf '#!/bin/bash\nexport STRATA_MCA_btl_openib_devices=rxe$PMIX_RANK\nexec "$@"\n' >/tmp/own
chmod +x /tmp/own
lost() { tc -s qdisc show | grep -o 'dropped [0-9]*' | awk '{ n += $2 } END { print n }'; }
for way in get put; do # about 15 s each; the guest's clock may be fast by a factor where the machine below is busy
    before=$(lost)
    timeout -k 2 450 strata-run -n 2 --mca btl openib,self --mca pml_ob1_rndv $way /tmp/own "$STRATA_BUILD/tests/programs/hostile" exchange
    echo "$way: status $?, $(($(lost) - before)) packets lost, $SECONDS s since the start"
done
END_OF_SCRIPT
expect_status 0 "$guest" --netem "loss 1%" bash "$work/lossy"
for way in get put; do
    check "$way: all arrives" grep -Eq "^$way: status 0, [1-9][0-9]{2,} packets lost" "$work/out"
done
cat "$work/out"
no_files
finish
