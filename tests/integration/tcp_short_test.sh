#!/bin/bash
# A short message passes what is on its way over TCP of a long one that goes in fragments; by one connection, with btl_tcp_bulk 0, it
# comes behind all of it. A long message whose packing fails leaves nothing, though the news of that passes what was sent before.
. "$STRATA_SOURCE/tests/integration/lib.sh"
passed() { # BULK: $bytes
    rm -f "$work/go" "$work/go.still"
    expect_status 0 strata-run -n 2 --mca btl tcp,self --mca btl_tcp_bulk "$1" "$STRATA_BUILD/tests/programs/behind" "$work/go"
    bytes=$(sed -nE 's/^passed ([0-9]+) bytes$/\1/p' "$work/out")
}
passed 1 && two=$bytes
passed 0 && one=$bytes
echo "bytes of the long message that the short one passed: $two by two connections, $one by one"
check "by two connections it passes what the kernels hold" test "${two:-0}" -gt 524288
check "by one connection it waits" test "${one:-1000000}" -lt 262144
expect_status 0 strata-run -n 2 --mca btl tcp,self --mca pml_ob1_stream_limit 1000000 --mca btl_tcp_eager_limit 4k \
    --mca btl_tcp_pipeline_send 8k strata-conformance --only messages/data/broken
out_has "^1 cases passed, 0 failed"
finish
