#!/bin/bash
# strata-run passes the ranks' output on when it is printed: lines that the C library would hold back from a pipe, what was printed
# before a rank died, prompts without an end of line; and says so when output cannot be written.
. "$STRATA_SOURCE/tests/integration/lib.sh"
printer=$STRATA_BUILD/tests/programs/printer
mkfifo "$work/go"
begin() { # COMMAND...: in the background as $pid
    rm -f "$work/out" "$work/err"
    "$@" >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
}
# Lets all ranks go on that wait for the FIFO to be opened, until N have, and waits for the job.
release() { # N STATUS
    check "$1 ranks go on" wait_until go_on "$1"
    wait "$pid"
    check "the job ends with $2" test $? = "$2"
}
go_on() {
    [ "$(grep -ca after "$work/out")" -ge "$1" ] || { timeout 0.2 bash -c ': >"$0"' "$work/go"; return 1; }
}
parts_are() { [ "$(grep -ao '50 %' "$work/out" | wc -l)" = "$1" ]; }
# A prompt, which a program flushes; then as printer does.
prompt='printf "$0"; : <"$1"; echo after'

# ---- lines come when they are printed
for n in 1 2; do
    begin strata-run -n $n "$printer" $'before\n' wait "$work/go"
    check "$n ranks: lines come before the ranks end" wait_until lines_are "$work/out" '^before$' $n
    check "$n ranks have not gone on" test "$(grep -c after "$work/out")" = 0
    release $n 0
done
# ---- lines longer than a pipe holds do not mix
# shellcheck disable=SC2016 # the ranks' shells expand it
expect_status 0 strata-run -n 4 sh -c 'head -c 1000000 /dev/zero | tr "\0" "$PMIX_RANK"; echo'
for rank in 0 1 2 3; do
    check "the line of rank $rank is whole" test "$(grep -c "^$rank*\$" "$work/out")" = 1
done
# ---- nothing is lost with a rank that dies
expect_status 139 strata-run -n 2 "$printer" $'last words\n' crash; out_has '^last words$'
for seconds in 1 20 300; do # a busy machine needs longer until both have printed
    expect_status 124 strata-run -n 2 --timeout $seconds "$printer" $'last words\n' stay
    if lines_are "$work/out" '^last words$' 2; then break; fi
done
check "both ranks' lines come before a timeout" lines_are "$work/out" '^last words$' 2
# ---- prompts and progress bars have no end of line
for n in 1 2; do
    begin strata-run -n $n sh -c "$prompt" '\r50 %%' "$work/go"
    check "$n ranks: parts of lines come" wait_until parts_are $n
    release $n 0
done
begin strata-run -n 2 --tag-output sh -c "$prompt" 'name? ' "$work/go"
check "a prompt comes, with a tag" wait_until file_has "$work/out" '^\[0\] name\? $'
check "the other's, too, on a line of its own" wait_until file_has "$work/out" '^\[1\] name\? $'
release 2 0
check "each line has a tag" test "$(grep -vc '^\[[01]\] ' "$work/out")" = 0

# ---- a pseudo-terminal, or a pipe
expect_status 0 strata-run -n 2 sh -c 'test -t 1 && ! test -t 2 && readlink /proc/self/fd/1'; out_has '^/dev/pts/'
expect_status 0 strata-run -n 2 --no-pty sh -c '! test -t 1 && readlink /proc/self/fd/1'; out_has '^pipe:'
expect_status 0 strata-run -n 1 sh -c 'ps -o tty= -p $$'; out_has '^?' # nobody's terminal
printf '\001\003\004\021\023\032\177\r\n\r\t\377' >"$work/odd"
check "no byte is changed" test "$(strata-run -n 1 cat "$work/odd" | od -c)" = "$(od -c "$work/odd")"

# ---- files of their own
expect_status 0 strata-run -n 3 --output-filename "$work/files/here" sh -c 'echo "out $PMIX_RANK"; echo "err $PMIX_RANK" >&2'
check "the output comes, too" lines_are "$work/out" '^out [012]$' 3
for rank in 0 1 2; do
    check "stdout of rank $rank" test "$(cat "$work/files/here/rank.$rank/stdout")" = "out $rank"
    check "stderr of rank $rank" test "$(cat "$work/files/here/rank.$rank/stderr")" = "err $rank"
done
expect_status 0 strata-run -n 2 --output-filename "$work/files/here:nocopy" echo alone
check "nothing but the files" test ! -s "$work/out"
check "a file begins anew" test "$(cat "$work/files/here/rank.0/stdout")" = alone
(cd "$work" && mkdir -p elsewhere && exec strata-run -n 1 --wdir elsewhere --output-filename relative echo where) >/dev/null
check "the folder is relative to ours" test "$(cat "$work/relative/rank.0/stdout")" = where
expect_status 1 strata-run -n 1 --output-filename /proc/none true; err_has "cannot make the folder /proc/none"
expect_status 2 strata-run -n 1 --output-filename :nocopy true; err_has "no folder is named"

# ---- output that cannot be written
run bash -c 'strata-run -n 2 echo lost >/dev/full'
check "a full device is an error" test "$status" = 1
err_has "cannot write standard output: No space left on device"
run bash -c 'ulimit -f 8; strata-run -n 1 sh -c "yes | head -c 100000" >"$0/limited"' "$work"
check "so is a file that may not become longer" test "$status" = 1; err_has "cannot write standard output: File too large"
# ---- a reader of standard error that does not read: strata-run says what has happened when it does, and ends the job before
mkfifo "$work/full"
exec 3<>"$work/full"
dd if=/dev/zero of="$work/full" bs=4096 count=1000 oflag=nonblock 2>/dev/null
# shellcheck disable=SC2016 # the ranks' shells expand it
strata-run -n 2 sh -c 'echo $$ >"$0/rank.$PMIX_RANK"
    [ $PMIX_RANK = 0 ] || until [ -s "$0/rank.0" ]; do sleep 0.02; done; [ $PMIX_RANK = 0 ] || exit 3; exec sleep 3600' "$work" >"$work/out" 2>&3 &
pid=$!
rank_has_ended() { [ -s "$work/rank.0" ] && ! kill -0 "$(cat "$work/rank.0")" 2>/dev/null; }
check "nobody reads standard error: the job ends" wait_until rank_has_ended
cat <&3 >"$work/err" &
reader=$!
check "what has happened is said once it is read" wait_until file_has "$work/err" 'rank 1 on .* exited with status 3; ending the job'
kill -KILL "$(cat "$work/rank.0")" 2>/dev/null
wait $pid
check "the job's status, not $?" test $? = 3
kill $reader
exec 3>&-

# ---- standard files that the caller has closed
run bash -c 'strata-run -n 2 echo lost >&-'
check "no standard output: output is an error" test "$status" = 1
err_has "cannot write standard output: Bad file descriptor"
expect_status 0 bash -c 'strata-run -n 2 true >&-'
expect_status 0 bash -c 'strata-run -n 1 sh -c "! cat 2>/dev/null" <&-'
# shellcheck disable=SC2016 # the ranks' shells expand it
expect_status 0 bash -c 'strata-run -n 2 sh -c '\''"$0" fence >"$1.$PMIX_RANK"'\'' "$@" <&- >&- 2>&-' bash \
    "$STRATA_BUILD/tests/programs/launch_probe" "$work/closed"
for rank in 0 1; do check "no standard file: rank $rank" grep -q "^rank $rank of 2\$" "$work/closed.$rank"; done

# A reader that leaves: ranks meet the end of their output, as they would without strata-run.
for how in --no-pty --tag-output; do
    run bash -c "strata-run -n 1 $how yes | head -3; exit \${PIPESTATUS[0]}"
    check "$how: a reader that leaves ends the job" test "$status" = 141
done
# libpmix cannot write to a rank that was killed, and says so: no news. All else that it says is passed on.
cat >"$work/filter.c" <<'END'
#include "filter.h"
#include <unistd.h>
static void print(const char *text, size_t n) { (void)!write(2, text, n); }
int main(void)
{
    static const char said[] = "first\n[vm:1] ptl_base: send_msg: write failed: Broken pipe\nlast";
    int fds[2];
    if (filter_begin(fds) != 0 || write(fds[1], said, sizeof said - 1) < 0)
        return 1;
    filter_pass(fds[0], print);
    return 0;
}
END
run "${CC:-cc}" -I"$STRATA_SOURCE/tools/strata-run" -o "$work/filter" "$work/filter.c" "$STRATA_SOURCE/tools/strata-run/filter.c"
expect_status 0 "$work/filter"
check "one line of libpmix's is left out" test "$(cat "$work/err")" = "$(printf 'first\nlast')"
no_files
finish
