#!/bin/bash
# Channels to a receiver that makes no progress (tests/programs/channel_sleeper.c), and how often the device finds no receive: of
# several channels whose queue is shared; not of one channel, nor where each peer has a queue of its own. Every message arrives.
. "$STRATA_SOURCE/tests/openib/lib.sh"
sleeper() { # CHANNELS QUEUES
    local sent taken
    rm -f "$work/full"
    try 0 "${openib[@]}" ${2:+--mca btl_openib_receive_queues "$2"} -n 2 "$STRATA_BUILD/tests/programs/channel_sleeper" "$1" "$work/full"
    sent=$(sed -n 's/^rank 0: //p' "$work/out") taken=$(sed -n 's/^rank 1: //p' "$work/out")
    { [ -n "$sent" ] && [ "$sent" = "$taken" ]; } || complain "$1 channels, ${2:-shared queues}: ${sent:-nothing} sent, ${taken:-nothing} taken"
    echo "$1 channels, ${2:-shared queues}: $sent, $(tally not-ready) deliveries without a receive"
}
sleeper 1
came not-ready 0 0 "one channel"
sleeper 16
came not-ready 1 1000000000 "16 channels, shared queues"
sleeper 16 "$peer"
came not-ready 0 0 "16 channels, a queue per peer"
finish
