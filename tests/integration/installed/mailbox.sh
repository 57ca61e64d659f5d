#!/bin/bash
# Builds docs/examples/btl_mailbox against the installed tree, puts it where a user would, and sends messages over it. Run by
# ../plugin_test.sh.
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"

cd "$work/examples/btl_mailbox"
make install CFLAGS="-O2 -g ${SANITIZER_FLAGS-}" || fail "the example does not build"
file=$HOME/.strata/components/strata_btl_mailbox.so
[ -f "$file" ] || fail "the plugin is not in ~/.strata/components"
exports_only "$file" st_component_btl_mailbox

# The README's and the tutorial's programs against the installed headers and library.
cd "$work/examples"
sed -n '/^```c$/,/^```$/{/^```/!p}' "$STRATA_SOURCE/README.md" >first.c
for example in first hello ring halo; do
    # shellcheck disable=SC2046,SC2086 # flags are meant to be split
    ${CC:-cc} -std=gnu11 -O2 ${SANITIZER_FLAGS-} $(pkg-config --cflags strata) "$example.c" -o "$example" $(pkg-config --libs strata) \
        -Wl,-rpath,"$root/lib" || fail "$example does not build against the installed tree"
done

out=$(strata-run --timeout "$job_limit" -n 2 ./first) || fail "the first program of README.md: $out"
[ "$out" = "rank 1 received 42" ] || fail "the first program of README.md: $out"

strata-info --components | grep -q mailbox || fail "strata-info does not list the plugin"
strata-info --param btl mailbox --level 9 | grep -q btl_mailbox_max_send || fail "strata-info does not list its parameters"
strata-info --counters --mca btl mailbox,self | grep -q '^  btl_mailbox_full = 0 times' || fail "strata-info does not show its counters"

for n in $(form "1 3" "1 2 4"); do
    for example in hello ring halo; do
        out=$(strata-run --timeout "$job_limit" -n "$n" --mca btl self,mailbox "./$example") || fail "$example, $n ranks: $out"
        [ "$example" = hello ] || grep -q ': ok$' <<<"$out" || fail "$example, $n ranks: $out"
        echo "$example over mailbox, $n ranks: ok"
    done
done

# Was it really used? Every pair of ranks must say so, and nobody may have gone by shared memory.
report=$(strata-run --timeout "$job_limit" -n 2 --mca btl self,mailbox --report-transports=json ./ring 2>&1) || fail "ring: $report"
[ "$(grep -c '"paths":\[{"transport":"mailbox"' <<<"$report")" -eq 2 ] || fail "not both ranks report mailbox: $report"
grep -q 'AF_UNIX datagrams' <<<"$report" || fail "the transport report lacks the plugin's own part: $report"
grep -q '"transport":"mailbox","bytes_sent":[1-9]' <<<"$report" || fail "nothing went by mailbox: $report"
text=$(strata-run --timeout "$job_limit" -n 2 --mca btl self,mailbox --report-transports ./ring 2>&1) || fail "ring: $text"
grep -q ' by mailbox, .*rdma_min never,' <<<"$text" || fail "what cannot get or put says from when it would: $text"
! grep -q '"transport":"sm"' <<<"$report" || fail "shared memory was used: $report"

# Long messages are cut into datagrams, a full mailbox is back-pressure: strata-perf checks what arrives.
strata-run --timeout "$job_limit" -n 2 --mca btl self,mailbox strata-perf latency --check --sizes 1:1m --iters 5 --batches 2 ||
    fail "strata-perf latency over mailbox"
strata-run --timeout "$job_limit" -n 2 --mca btl self,mailbox --mca btl_mailbox_max_send 2k \
    strata-perf bw --check --sizes 1k:256k --window 8 --iters 2 --batches 2 || fail "strata-perf bw over mailbox with small datagrams"

# Nobody asked for it: a faster transport is there, and the plugin keeps quiet.
report=$(strata-run --timeout "$job_limit" -n 2 --report-transports=json ./ring 2>&1) || fail "ring with all transports: $report"
! grep -q '"paths":\[[^]]*"transport":"mailbox"' <<<"$report" || fail "mailbox was used although nobody asked: $report"

# A misspelt name is an error that names the nearest.
status=0
out=$(strata-run --timeout "$job_limit" -n 2 --mca btl self,mailbux ./ring 2>&1) || status=$?
[ "$status" -eq 2 ] || fail "unknown component: status $status: $out"
grep -q mailbox <<<"$out" || fail "unknown component: the nearest match is not named: $out"

(cd "$work/examples/btl_mailbox" && make uninstall) || fail "make uninstall"
[ ! -e "$file" ] || fail "the plugin is still there after make uninstall"
echo "all ok"
