#!/bin/bash
# One packet of a hundred is lost between two machines, in both directions: messages of all sizes arrive, each once.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
command -v nft >/dev/null || skip "nft is not installed (Debian: nftables)"
two_links
for m in 1 2; do
    ip netns exec $space$m nft -f - 2>"$work/err" <<'EOF' || skip "nft cannot be used here: $(cat "$work/err")"
table ip strata {
    chain in {
        type filter hook input priority 0;
        iifname eth0 numgen random mod 100 < 1 counter drop
    }
}
EOF
done
dropped() { # MACHINE
    ip netns exec "$space$1" nft list table ip strata | sed -nE 's/.*counter packets ([0-9]+) .*/\1/p'
}
cluster -np 4 -x STRATA_MCA_btl=tcp,sm,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 \
    "$STRATA_BUILD/tests/programs/traffic" mixed 200000 50 2
check "traffic ends well" test "$status" = 0
check "all has arrived" grep -q '^mixed 200000 ' "$work/out"
cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 strata-conformance --only messages/basic/
check "cases end well" test "$status" = 0
check "cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
for m in 1 2; do check "packets to machine $m were lost" test "$(dropped $m)" -gt 0; done
finish
