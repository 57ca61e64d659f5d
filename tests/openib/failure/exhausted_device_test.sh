#!/bin/bash
# A device that has no more of an object: the message names the object and the device's limit, and speaks of `ulimit -l` only where
# registered memory may be what ran out.
. "$STRATA_SOURCE/tests/openib/lib.sh"
memlock='; ulimit -l is '
refused() { # LIMIT MESSAGE
    try 1 "$1" "${openib[@]}" -n 2 "$hostile" exchange
    says "openib was asked for and cannot be used: soft0:1: no .* can be made: Cannot allocate memory$2"
}
refused SOFTHCA_MAX_CQ=1 '; the device has 1 completion queues for all processes \(max_cq\)$'
refused SOFTHCA_MAX_SRQ=1 '; the device has 1 shared receive queues for all processes \(max_srq\)$'
# Whether regions or bytes ran out cannot be told where not even a page can be registered: both are named.
ulimit -S -l 8192
refused SOFTHCA_MAX_MR=3 "; the device has 3 memory regions for all processes \\(max_mr\\)$memlock"
refused SOFTHCA_MEMLOCK=64k "$memlock"
! grep -q 'the device has' "$work/err" || complain "a page can be registered, so that regions are not what ran out"
finish
