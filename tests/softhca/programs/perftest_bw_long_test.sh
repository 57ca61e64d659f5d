#!/bin/bash
# perftest's programs over softhca: bandwidths, with many queue pairs too. All sizes are 2 bytes to 8 MiB, of datagrams to 4096. The short
# form runs one program over all sizes, and the others at one size.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v ib_send_lat >/dev/null || skip "no perftest"
say_form "$(form 12 34) of 34 runs"

if ! full_form; then
    perftest 23 ib_send_bw -a -c RC -n 10 -t 10
    perftest 1 ib_write_bw -c UC -n 100
    perftest 1 ib_send_bw -c UD -n 100 -s 2048
    perftest 1 ib_read_bw -n 100
    perftest 1 ib_atomic_bw -A FETCH_AND_ADD -n 200
    perftest 1 ib_send_bw -e -c UD -s 1024 -n 200
    perftest 1 ib_send_bw --use-srq -s 512 -n 200
    perftest 1 ib_send_bw -q 64 -n 50 -s 4096
    perftest 1 ib_read_bw -q 16 -n 50
    perftest 1 ib_send_bw -q 16 --use-srq -n 50 -s 4096
    perftest 1 ib_send_bw -b -n 200
    perftest 1 ib_send_bw -Q 10 -n 200
    finish
fi
for type in RC UC; do
    perftest 23 ib_send_bw -a -c "$type" -n 10 -t 10
    perftest 23 ib_write_bw -a -c "$type" -n 10 -t 10
done
perftest 12 ib_send_bw -a -c UD -n 10 -t 10
perftest 23 ib_read_bw -a -n 10 -t 10
perftest 1 ib_atomic_bw -A CMP_AND_SWAP
perftest 1 ib_atomic_bw -A FETCH_AND_ADD
for type in RC UC UD; do perftest 1 ib_send_bw -e -c "$type" -s 1024; done
perftest 1 ib_read_bw -e
perftest 1 ib_atomic_bw -e
perftest 1 ib_send_bw --use-srq -s 512
perftest 1 ib_send_bw --use-srq -s 512 -c UD
for q in 2 16 64; do
    perftest 1 ib_send_bw -q "$q" -n 200 -s 4096
    perftest 1 ib_write_bw -q "$q" -n 200
    perftest 1 ib_read_bw -q "$q" -n 200
    perftest 1 ib_atomic_bw -q "$q" -n 200
done
perftest 1 ib_send_bw -q 16 --use-srq -n 200 -s 4096
perftest 1 ib_send_bw -q 16 -e -n 200 -s 4096
perftest 1 ib_send_bw -b -n 500
perftest 1 ib_write_bw -b -n 500 -q 16
perftest 1 ib_read_bw -b -n 500
perftest 1 ib_send_bw -b -c UD -n 500 -s 2048
perftest 1 ib_send_bw -Q 10 -n 1000
finish
