#!/bin/bash
# perftest's programs over softhca: latencies. All sizes are 2 bytes to 8 MiB, of datagrams to 4096. The short form runs one program
# over all sizes, and the others at one size.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v ib_send_lat >/dev/null || skip "no perftest"
say_form "$(form "one of six programs over" "six programs over") all sizes"

if full_form; then
    for type in RC UC; do
        perftest 23 ib_send_lat -a -c "$type" -n 20
        perftest 23 ib_write_lat -a -c "$type" -n 20
    done
    perftest 12 ib_send_lat -a -c UD -n 20
    perftest 23 ib_read_lat -a -n 20
else
    perftest 23 ib_write_lat -a -c RC -n 5
    perftest 1 ib_send_lat -c UC -n 100
    perftest 1 ib_write_lat -c UC -n 100
    perftest 1 ib_send_lat -c UD -n 100
    perftest 1 ib_read_lat -n 100
fi
few=()
full_form || few=(-n 100)
perftest 1 ib_atomic_lat -A CMP_AND_SWAP "${few[@]}"
perftest 1 ib_atomic_lat -A FETCH_AND_ADD "${few[@]}"
# With -e these programs take one event, request the next and poll once. Where a request makes an event of a completion that is there
# already, they miss a late completion, and have no room for it.
export SOFTHCA_ARM=new
for type in RC UC UD; do perftest 1 ib_send_lat -e -c "$type" -s 1024 "${few[@]}"; done
perftest 1 ib_read_lat -e "${few[@]}"
perftest 1 ib_atomic_lat -e "${few[@]}"
unset SOFTHCA_ARM
perftest 1 ib_send_lat --use-srq -s 512 "${few[@]}"
perftest 1 ib_send_lat --use-srq -s 512 -c UD "${few[@]}"
perftest 1 ib_write_lat -I 220 -s 200 "${few[@]}"
perftest 1 ib_send_lat -I 220 -s 200 "${few[@]}"
finish
