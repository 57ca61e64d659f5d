#!/bin/bash
# The tutorial's programs, and a pipeline of channels, under strata-run, with several numbers of ranks; each checks its own result.
set -eu
. "$STRATA_SOURCE/tests/support/wait.sh"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
for n in 1 2 3 4 7; do
    for example in hello ring halo series pipeline; do
        out=$(strata-run --timeout "$job_limit" -n "$n" "$STRATA_BUILD/docs/examples/$example") || fail "$example with $n ranks: $out"
        case $example in
        hello) [ "$(grep -c '^hello from rank [0-9]* of '"$n" <<<"$out")" -eq "$n" ] || fail "hello with $n ranks: $out" ;;
        *) grep -q ': ok$' <<<"$out" || fail "$example with $n ranks: $out" ;;
        esac
        echo "$example, $n ranks: ok"
    done
done

# Without a transport to the peer each says why and ends the job; no rank is left waiting.
for example in hello ring halo series pipeline; do
    status=0
    out=$(strata-run --timeout "$job_limit" -n 2 --mca btl self "$STRATA_BUILD/docs/examples/$example" 2>&1) || status=$?
    [ "$status" -eq 1 ] || fail "$example without a transport: status $status: $out"
    grep -q 'no transport reaches rank' <<<"$out" || fail "$example without a transport: $out"
done

# Started alone, without a launcher, a program is a job of one rank.
for example in hello ring halo series pipeline; do
    out=$("$STRATA_BUILD/docs/examples/$example") || fail "$example alone: $out"
    echo "$example, alone: ok"
done

# The tutorial promises that each fits on a page.
for example in hello ring halo series; do
    [ "$(wc -l <"$STRATA_SOURCE/docs/examples/$example.c")" -lt 60 ] || fail "$example.c has 60 lines or more"
done

# Pages say how long the example transports are: "[examples/btl_X](...)..., in under N lines".
for example in btl_mailbox:write-a-btl btl_mqueue:write-a-btl btl_cxxbox:write-a-btl; do
    page=$STRATA_SOURCE/docs/${example#*:}.md dir=$STRATA_SOURCE/docs/examples/${example%:*}
    said=$(tr '\n' ' ' <"$page" | sed -n "s/.*\](examples\/${example%:*}\/)[^]]*\bin under \([0-9]*\) lines.*/\1/p")
    [ -n "$said" ] || fail "$page does not say how long ${example%:*} is"
    have=$(find "$dir" -name '*.[ch]' -exec cat {} + -o -name '*.cc' -exec cat {} + | wc -l)
    { [ "$have" -lt "$said" ] && [ "$have" -ge $((said - 60)) ]; } || fail "${example%:*} has $have lines, not under $said and about so many"
    echo "${example%:*}: $have lines, under $said"
done
