#!/bin/bash
# UCX's own performance test over softhca: reliable connections (wired up by datagrams), and datagrams alone.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v ucx_perftest >/dev/null || skip "no ucx-utils"
say_form "messages of $(form "one size" "three sizes") in each test"

export UCX_NET_DEVICES=soft0:1 UCX_WARN_UNUSED_ENV_VARS=n
# A setting that names no transport of softhca makes the program end with an error, so what passes went over softhca.
for UCX_TLS in rc_verbs,ud_verbs:aux,self ud_verbs,self; do
    export UCX_TLS
    echo "UCX_TLS=$UCX_TLS"
    for test in tag_lat tag_bw stream_lat ucp_am_lat ucp_put_lat ucp_put_bw ucp_get; do
        # In the short form latencies are of 8 bytes, bandwidths of 100000, all by datagrams of 4000.
        case $test,$UCX_TLS in
        *,ud*) sizes=4000 ;;
        *_lat,*) sizes=8 ;;
        *) sizes=100000 ;;
        esac
        ! full_form || sizes="8 4000 100000"
        case $test,$UCX_TLS in
        stream_lat,ud* | ucp_put_lat,ud* | ucp_am_lat,ud*) full_form || continue ;;
        esac
        for size in $sizes; do
            pair 300 '^Final:' 1 ucx_perftest -p @ -t "$test" -s "$size" -n "$(form 100 500)" -w 20
        done
    done
    pair 300 '^Final:' 1 ucx_perftest -p @ -t tag_bw -s 1048576 -n "$(form 20 100)" -w 5
    pair 300 '^Final:' 1 ucx_perftest -p @ -t tag_lat -s 8 -n "$(form 100 500)" -E sleep
done
# The transports themselves.
unset UCX_TLS
for transport in rc_verbs ud_verbs; do
    for test in am_lat am_bw; do
        pair 300 '^Final:' 1 ucx_perftest -p @ -d soft0:1 -x "$transport" -t "$test" -D bcopy -s 1000 -n 500 -w 20
    done
done
for test in put_lat put_bw get fadd cswap; do
    method=zcopy size=100
    case $test in fadd | cswap) method=short size=8 ;; esac
    pair 300 '^Final:' 1 ucx_perftest -p @ -d soft0:1 -x rc_verbs -t "$test" -D "$method" -s "$size" -n 500 -w 20
done
finish
