#!/bin/bash
# Links over openib: processes that no launcher has started (tests/programs/channel_link.c) have channels over softhca; one dies, and
# the others' go on.
. "$STRATA_SOURCE/tests/openib/lib.sh"
program=$STRATA_BUILD/tests/programs/channel_link
export STRATA_CHANNEL_SECRET='a secret of some length' STRATA_MCA_btl=openib,self STRATA_MCA_btl_openib_keepalive_ms=500 SOFTHCA_FABRIC=link-$$
unset STRATA_CHANNEL_SECRET_FILE
soft() { timeout -k 2 $limit env LD_PRELOAD="$STRATA_BUILD/softhca/.libs/libsofthca.so" "$program" "$@"; }
start() { # ARGS...: a process that listens; sets $address and $listener
    rm -f "$work/listener"
    soft "$@" >"$work/listener" 2>"$work/err" &
    listener=$!
    wait_until file_has "$work/listener" '^listens at' || complain "$*: it does not listen"
    address=$(sed -n 's/^listens at //p' "$work/listener")
}
ended() {
    wait "$listener" || complain "the one that listens ended with $?: $(cat "$work/listener")"
}
n=4 callers=()
start listen 127.0.0.1:0 $n
for ((i = 0; i < n; i++)); do
    soft connect "$address" 200 >"$work/caller.$i" 2>&1 &
    callers+=($!)
done
for i in "${callers[@]}"; do wait "$i" || complain "a caller failed"; done
ended
[ "$(cat "$work"/caller.* | grep -c '^all came back')" = $n ] || complain "messages are missing: $(cat "$work"/caller.*)"
[ "$(sed -n 's/^number //p' "$work"/caller.* | sort -n | tr '\n' ' ')" = "$(seq -s ' ' $n) " ] || complain "the numbers"
grep -q "^served $n\$" "$work/listener" || complain "it has not served all"

start survive 127.0.0.1:0
soft connect "$address" 5 die >"$work/died" 2>&1 &
victim=$!
wait_until file_has "$work/died" '^number 1' || complain "the one that is to die does not join"
soft connect "$address" 30 >"$work/caller" 2>&1 || complain "beside one that died: $(cat "$work/caller")"
wait "$victim" 2>/dev/null
ended
grep -q '^1: the peer failed' "$work/listener" || complain "the one that died: $(cat "$work/listener")"
grep -q '^2: ended' "$work/listener" || complain "the other: $(cat "$work/listener")"
finish
