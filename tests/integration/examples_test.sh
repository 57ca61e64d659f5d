#!/bin/bash
# The tutorial's programs under strata-run, with several numbers of ranks; each checks its own result.
set -eu

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
for n in 1 2 3 4 7; do
    for example in hello ring halo; do
        out=$(strata-run --timeout 60 -n "$n" "$STRATA_BUILD/docs/examples/$example") || fail "$example with $n ranks: $out"
        case $example in
        hello) [ "$(grep -c '^hello from rank [0-9]* of '"$n" <<<"$out")" -eq "$n" ] || fail "hello with $n ranks: $out" ;;
        *) grep -q ': ok$' <<<"$out" || fail "$example with $n ranks: $out" ;;
        esac
        echo "$example, $n ranks: ok"
    done
done

# Started alone, without a launcher, a program is a job of one rank.
for example in hello ring halo; do
    out=$("$STRATA_BUILD/docs/examples/$example") || fail "$example alone: $out"
    echo "$example, alone: ok"
done

# The tutorial promises that each fits on a page.
for example in hello ring halo; do
    [ "$(wc -l <"$STRATA_SOURCE/docs/examples/$example.c")" -lt 60 ] || fail "$example.c has 60 lines or more"
done
