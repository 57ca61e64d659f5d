#!/bin/bash
# Addresses and packets of btl_openib as parameters: GIDs (IPv4 and IPv6), partition key, service level, MTU, time-outs. What
# cannot be had is an error that says what can.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
pong=(strata-perf latency --check --batches=1 --iters=3 --sizes=8:8k)
good() { try 0 "${openib[@]}" "$@" -n 2 "${pong[@]}"; }
bad() { # MESSAGE PARAMETER VALUE
    try nonzero "${openib[@]}" --mca "$2" "$3" -n 2 "${pong[@]}"
    says "$1"
}

for link in ib roce; do
    export SOFTHCA_LINK=$link
    good --mca btl_openib_gid_index 0 # IPv6, link-local
    good --mca btl_openib_mtu 512 --mca btl_openib_service_level 3 --mca btl_openib_timeout 16 --mca btl_openib_retry_count 3
    good --mca btl_openib_pkey_index 0 --mca btl_openib_rnr_timer 10
done
# The device itself says what its queue pairs have been given, two at each rank.
told=(env "LD_PRELOAD=$STRATA_BUILD/tests/openib/connect/.libs/print_path.so:$STRATA_BUILD/softhca/.libs/libsofthca.so" "${pong[@]}")
export STRATA_MCA_mca_base_tune=off # else a rank measures between two queue pairs of its own
all_told() { [ "$(grep -c "^$1" "$work/err")" = 4 ] || complain "not 4 queue pairs with $1: $(cat "$work/err")"; }
for link in ib roce; do
    for path in "3, gid_index 0" "0, gid_index 1"; do
        [ "$link$path" != "ib0, gid_index 1" ] || continue # has one GID
        for method in ud rdmacm; do
            [ $method != rdmacm ] || grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile" || continue
            try 0 SOFTHCA_LINK=$link "${openib[@]}" --report-transports=json --mca btl_openib_service_level "${path%%,*}" \
                --mca btl_openib_gid_index "${path##* }" --mca btl_openib_connect $method -n 2 "${told[@]}"
            all_told "path: service level $path, to "
        done
    done
done
try 0 SOFTHCA_PKEYS=2 "${openib[@]}" --mca btl_openib_mtu 512 --mca btl_openib_pkey_index 1 --mca btl_openib_rnr_timer 10 \
    --mca btl_openib_timeout 16 --mca btl_openib_retry_count 3 -n 2 "${told[@]}"
all_told "pair: mtu 512, pkey_index 1, rnr_timer 10, timeout 16, retry_count 3$"
# Of 5 messages of 1 KiB each way all but the first are one packet: their heads are immediate data.
try 0 SOFTHCA_LINK=roce "${openib[@]}" --report-transports=json --mca btl_openib_mtu 1024 -n 2 strata-perf latency --check --batches=1 --iters=5 --sizes=1k:1k
at_least imm_heads 8 "messages of 1 KiB in packets of 1 KiB"
# What waits for credits goes by lists when they come: 512 messages of 2 KiB at a time for 64 credits.
try 0 "${openib[@]}" --report-transports=json -n 2 strata-perf bw --check --batches=2 --iters=3 --sizes=2k:2k --window=512
at_least listed 200 "windows of 512 messages of 2 KiB"
good --mca btl_openib_gid_index 1 # IPv4, with RoCE

# ---- put and get in pieces, more of them than there is room for; of themselves on Ethernet, whose packets may be lost
long=(strata-perf latency --check --batches=1 --iters=3 --sizes=64k:4m)
for way in get put pipeline; do
    try 0 "${openib[@]}" --report-transports=json --mca pml_ob1_rndv $way --mca btl_openib_rdma_request 4k --mca btl_openib_rdma_reads 1 \
        --mca btl_openib_send_depth_low 8 -n 2 "${long[@]}"
    says '"rdma_request":4096,'
    got=$(count bytes_got) sent=$(count bytes_sent) fragments=$(count sent_low)
    case $way in # 99 MB in all; what is less than 128 KiB goes in fragments anyway
    get) [ "$got" -gt 90000000 ] ;;
    put) [ "$got" = 0 ] && [ "$sent" -gt 90000000 ] && [ "$fragments" -lt 100 ] ;;
    pipeline) [ "$got" = 0 ] && [ "$sent" -gt 90000000 ] && [ "$fragments" -gt 1000 ] ;;
    esac || complain "rndv=$way: $got bytes were got, $sent sent, $fragments fragments"
done
for link in ib:1073741824:16 roce:32768:4; do
    IFS=: read -r name request reads <<<"$link"
    try 0 SOFTHCA_LINK="$name" "${openib[@]}" --report-transports=json -n 2 "${long[@]}"
    says "\"rdma_request\":$request,\"rdma_reads\":$reads,"
done
export SOFTHCA_LINK=ib
# A limit above what a buffer holds is what it holds.
try 0 "${openib[@]}" --report-transports --mca btl_openib_eager_limit 1m -n 2 "$STRATA_BUILD/tests/programs/reconnect" 1
says 'by openib, .*eager_limit ([0-9]+),.* max_send \1,'

bad 'btl_openib_mtu=1000: the MTU is 256, 512, 1024, 2048 or 4096 bytes' btl_openib_mtu 1000
bad 'btl_openib_gid_index=200: the GID table of soft0:1 has entries 0 to [0-9]+' btl_openib_gid_index 200
bad 'btl_openib_pkey_index=7: the partition key table of soft0:1 has entries 0 to 0' btl_openib_pkey_index 7
# ---- queues that are longer than the device has them: known before anything is connected
bad 'high priority: CREDITS \(16384\) may be 16376 at most, since a receive queue of soft0:1 holds 16384 buffers, 8 of them' \
    btl_openib_receive_queues P,8k,16392,1,16384:S,32k,1024,8,16
bad 'high priority: COUNT \(16384\) must be 16392 at least: CREDITS \(16384\) and 8 for what needs none' \
    btl_openib_receive_queues P,8k,16384,1,16384:S,32k,1024,8,16
export SOFTHCA_MAX_QP_WR=200
good --mca btl_openib_receive_queues P,8k,200,1,192:P,32k,200,1,199
bad 'low priority: CREDITS \(200\) may be 199 at most, since a receive queue of soft0:1 holds 200 buffers, 1 of them' \
    btl_openib_receive_queues P,8k,200,1,192:P,32k,201,1,200
good --mca btl_openib_send_depth_high 200 --mca btl_openib_send_depth_low 200
bad 'btl_openib_send_depth_high=201: a send queue of soft0:1 holds 200 work requests at most' btl_openib_send_depth_high 201
bad 'btl_openib_send_depth_low=201: a send queue of soft0:1 holds 200 work requests at most' btl_openib_send_depth_low 201
unset SOFTHCA_MAX_QP_WR
# A shared queue that is shorter than it might be only grows less.
try 0 SOFTHCA_MAX_SRQ_WR=100 "${openib[@]}" --mca mca_base_verbose 3 -n 2 "${pong[@]}"
says 'a shared receive queue of soft0:1 holds 100 buffers at most, fewer than COUNT \(16384\) of high priority'

# One rank is in another partition: both say so, also who only receives.
differently STRATA_MCA_btl_openib_pkey_index 1
try 0 SOFTHCA_PKEYS=2 strata-run --softhca -n 2 --mca btl openib,sm,self "$work/differently" "$STRATA_BUILD/tests/programs/reconnect" 3 oneway
says 'strata\[.*:0\].*rank 1 has partition key 0xfffe, rank 0 \(here\) 0xffff'
says 'strata\[.*:1\].*rank 0 has partition key 0xffff, rank 1 \(here\) 0xfffe'
try 0 SOFTHCA_PKEYS=2 "${openib[@]}" --mca btl_openib_pkey_index 1 -n 2 "${pong[@]}"
unsaid 'both in the second partition'
bad 'service_level' btl_openib_service_level 16
bad 'timeout' btl_openib_timeout 32
bad 'retry_count' btl_openib_retry_count 8
finish
