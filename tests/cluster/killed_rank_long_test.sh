#!/bin/bash
# A rank of another machine is killed in the middle of long messages that it sends, or receives, over TCP: the others are told and go
# on. peer_death checks that each operation ends with its data or with STRATA_ERR_PEER.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "killed while it sends" "killed while it sends, receives, and between messages")"
two_links
# shellcheck disable=SC2046 # words
for when in sending $(form "" "receiving connected"); do
    cluster --enable-recovery -np 3 -x STRATA_MCA_btl=tcp,sm,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 \
        -x STRATA_MCA_mca_base_fence_after_failure_ms=500 "$STRATA_BUILD/tests/programs/peer_death" $when
    check "killed $when: the others are told and go on" test "$(grep -c 'goes on$' "$work/out")" = 2
    check "killed $when: both were told" test "$(grep -c 'was told after' "$work/out")" = 2
    check "killed $when: nobody waits for ever at the end" test "$(grep -c watchdog "$work/err")" = 0
done
finish
