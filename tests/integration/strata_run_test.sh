#!/bin/bash
# strata-run: options, exit statuses, output, signals, deaths, and that nothing is left behind.
# starts first
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
mark=90000$$ # argument of sleep by which this test's processes are recognised: a day and more

# ---- wrong usage: 2, 126, 127, and a word about why
expect_status 2 strata-run true; err_has "-n N is missing"
expect_status 2 strata-run -n 0 true; err_has "at least 1 rank"
expect_status 2 strata-run -n -3 true; err_has "at least 1 rank"
expect_status 2 strata-run -n two true; err_has "not a number"
expect_status 2 strata-run -n 99999999999999999999 true; err_has "not supported"
expect_status 2 strata-run -n 2; err_has "PROGRAM is missing"
expect_status 2 strata-run -n 2 --no-such-option true; err_has "unrecognized option"
expect_status 2 strata-run -n 2 --bind-to board true; err_has "must be one of none, hwthread, core, numa, socket"
expect_status 2 strata-run -n 2 --timeout never true; err_has "number of seconds"
expect_status 2 strata-run -n 2 --report-transports=xml true; err_has "text or json"
expect_status 2 strata-run -n 2 --mca; err_has "mca"
expect_status 2 strata-run -n 2 --mca btl_self_priorty 3 true; err_has "btl_self_priority"
expect_status 2 strata-run -n 2 --mca btl slef true; err_has "self"
expect_status 2 env STRATA_MCA_mca_base_verbos=1 strata-run -n 1 true; err_has "mca_base_verbose"
expect_status 2 bash -c 'ulimit -n 200; exec strata-run -n 500 true'; err_has "ulimit -n"
expect_status 127 strata-run -n 2 no-such-program; err_has "no-such-program: not found"
expect_status 127 strata-run -n 2 ./no/such/program; err_has "no such file"
expect_status 126 strata-run -n 2 /etc/passwd; err_has "not an executable"
printf 'not a program' >"$work/garbage"; chmod +x "$work/garbage"
expect_status 126 strata-run -n 2 "$work/garbage"; err_has "Exec format error"
expect_status 0 strata-run --version; out_has "strata-run (Strata) 0"
expect_status 0 strata-run --help; out_has "PROGRAM"

# ---- what ranks get
expect_status 0 strata-run -n 3 -x COLOUR=blue -x HOME --mca btl_self_priority 7 --mca mca_base_verbose 2 \
    sh -c 'echo "$PMIX_RANK $COLOUR $STRATA_MCA_btl_self_priority $STRATA_COMMAND_LINE $0 $1"' a "b c"
out_has "^2 blue 7 btl_self_priority,mca_base_verbose a b c$"
check "three lines" test "$(wc -l <"$work/out")" = 3
expect_status 0 strata-run -n 1 --report-transports=json sh -c 'echo "$STRATA_MCA_mca_base_report_transports"'
out_has '^json$'
expect_status 0 strata-run -n 2 sh -c 'exec echo -n 5 "$@"' sh --tag-output -n 7 # options after PROGRAM are the program's
out_has -- "--tag-output -n 7"
echo input >"$work/in"
check "stdin reaches rank 0, and no other" test "$(strata-run -n 3 sh -c 'read x; echo "$PMIX_RANK:$x"' <"$work/in" |
    sort | tr '\n' ' ')" = "0:input 1: 2: "
# Cores among the processors that this process may use: by the kernel's lists of siblings, which virtual machines may lack.
cores=0 seen=,
for processor in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g' | tr ' ' '\n' | sed 's/^\([0-9]*\)-\([0-9]*\)$/seq \1 \2/e'); do
    siblings=$(cat "/sys/devices/system/cpu/cpu$processor/topology/thread_siblings_list" 2>/dev/null || echo "$processor")
    case $seen in *",$siblings;"*) ;; *) seen="$seen,$siblings;" cores=$((cores + 1)) ;; esac
done
expect_status 0 strata-run -n "$cores" --bind-to core sh -c 'taskset -p $$ | sed "s/.*: //"'
check "each of $cores ranks has a core of its own" test "$(sort -u "$work/out" | wc -l)" -eq "$cores"
expect_status 0 strata-run -n 2 --bind-to none sh -c 'taskset -p $$ | sed "s/.*: //"'
check "unbound ranks have our mask" test "$(sort -u "$work/out")" = "$(taskset -p $$ | sed 's/.*: //')"
check "two ranks say so" test "$(wc -l <"$work/out")" = 2

# ---- output: whole lines, nothing lost, binary safe
expect_status 0 strata-run -n 4 sh -c 'i=0; while [ $i -lt 500 ]; do printf "rank %s " $PMIX_RANK; echo "line $i"; i=$((i+1)); done'
check "2000 whole lines" test "$(grep -cE '^rank [0-3] line [0-9]+$' "$work/out")" = 2000
expect_status 0 strata-run -n 3 --tag-output sh -c 'echo out; echo err >&2; printf "no end"'
out_has '^\[2\] out$'; out_has '^\[1\] no end$'; err_has '^\[0\] err$'
head -c 30000000 /dev/urandom >"$work/big"
check "30 MB of binary output" test "$(strata-run -n 1 cat "$work/big" | md5sum)" = "$(md5sum <"$work/big")"
# A reader that begins when a megabyte waits for it.
check "30 MB through a slow reader" test "$(strata-run -n 1 sh -c '
    head -c 1000000 "$0/big"; touch "$0/begun"; tail -c +1000001 "$0/big"' "$work" |
    (wait_until test -e "$work/begun"; cat) | md5sum)" = "$(md5sum <"$work/big")"
# A reader that begins when the rank and its pipe have gone: a megabyte in strata-run, the rest in two pipes.
head -c 1179648 "$work/big" >"$work/most"
mkfifo "$work/fifo"
strata-run -n 1 --no-pty sh -c 'p=$(readlink /proc/$$/fd/1); echo "$p" >"$0/pipe"; exec cat "$0/most"' "$work" >"$work/fifo" 2>"$work/err" &
pid=$!
exec 3<"$work/fifo"
pipe_is_closed() { [ -s "$work/pipe" ] && ! ls -l "/proc/$pid/fd" | grep -qF "$(cat "$work/pipe")"; }
check "strata-run closes the pipe of a rank that has ended" wait_until pipe_is_closed
check "output is complete when its reader comes late" test "$(md5sum <&3)" = "$(md5sum <"$work/most")"
exec 3<&-
wait $pid
# Output that nobody reads keeps it no longer than until it is asked to end.
strata-run -n 1 --no-pty sh -c 'echo $$ >"$0/rank"; exec cat "$0/most"' "$work" >"$work/fifo" 2>"$work/err" &
pid=$!
exec 3<"$work/fifo"
rank_is_reaped() { [ -s "$work/rank" ] && ! kill -0 "$(cat "$work/rank")" 2>/dev/null; }
check "the rank whose output nobody reads ends" wait_until rank_is_reaped
kill -TERM $pid
has_ended() { ! in_state "$pid" RSDT; }
check "one signal ends a strata-run whose output nobody reads" wait_until has_ended
kill -KILL $pid 2>/dev/null
wait $pid
check "its status is of that signal, not $?" test $? = 143
exec 3<&-
expect_status 3 strata-run -n 2 --tag-output sh -c '[ $PMIX_RANK = 0 ] && exec sleep '$mark'; seq 20000; exit 3'
check "output of a failing rank is complete" test "$(sed -n 's/^\[1\] //p' "$work/out" | md5sum)" = "$(seq 20000 | md5sum)"
run bash -c 'strata-run -n 1 yes | head -3; exit ${PIPESTATUS[0]}'
check "a reader that leaves ends the job" test "$status $(tr '\n' ' ' <"$work/out")" = "141 y y y "

# ---- a rank fails
expect_status 3 strata-run -n 3 sh -c '[ $PMIX_RANK = 1 ] && exit 3; exec sleep '$mark
err_has "rank 1 on .* (pid [0-9]*) exited with status 3; ending the job"; nobody_runs "sleep $mark"
expect_status 137 strata-run -n 3 sh -c '[ $PMIX_RANK = 2 ] && kill -9 $$; exec sleep '$mark
err_has "rank 2 on .* was killed by signal 9 (Killed)"; nobody_runs "sleep $mark"
check "one line per failed job" test "$(wc -l <"$work/err")" = 1
expect_status 5 strata-run -n 2 sh -c 'trap "" TERM; [ $PMIX_RANK = 1 ] && exit 5; sleep '$mark'; sleep '$mark
nobody_runs "sleep $mark"
# The others go on when strata-run has reaped rank 1.
cat >"$work/first_ends" <<'END'
#!/bin/sh
[ $PMIX_RANK != 1 ] || { echo $$ >"$1.new"; mv "$1.new" "$1"; exit $2; }
looks=0
until [ -s "$1" ] && ! kill -0 "$(cat "$1")" 2>/dev/null; do
    looks=$((looks + 1))
    [ $looks -lt 15000 ] || { echo "rank $PMIX_RANK has looked $looks times: rank 1 is still there" >&2; exit 9; }
    sleep 0.02
done
echo done
END
chmod +x "$work/first_ends"
expect_status 0 strata-run -n 2 "$work/first_ends" "$work/pid0" 0 # never joined: may leave
check "the other goes on" test "$(grep -c "done" "$work/out")" = 1
expect_status 4 strata-run -n 3 --keep-going "$work/first_ends" "$work/pid4" 4
check "the others go on" test "$(grep -c "done" "$work/out")" = 2
expect_status 124 strata-run -n 2 --timeout 0.5 sleep $mark; err_has "timeout"; nobody_runs "sleep $mark"
expect_status 0 strata-run -n 1 sh -c "sleep $mark & exit 0"; nobody_runs "sleep $mark"
# timeout(1) makes a process group of its own. What has made a session of its own stays.
expect_status 3 strata-run -n 2 sh -c '[ $PMIX_RANK = 0 ] && timeout 80000 sleep '$mark'
    until pgrep -f "^sleep '$mark'\$" >/dev/null; do sleep 0.02; done; exit 3'
nobody_runs "sleep $mark"
expect_status 0 strata-run -n 1 sh -c 'setsid sh -c "echo \$\$ >\$0/daemon; exec sleep 3600" "$0" & until [ -s "$0/daemon" ]; do sleep 0.02; done' "$work"
check "a process with a session of its own stays" kill "$(cat "$work/daemon")"

# ---- signals
start() { # N COMMAND...: in the background as $pid; returns when N ranks have said "ready"
    local n=$1
    shift
    rm -f "$work/out" "$work/err"
    # Whoever runs the tests with nohup has SIGHUP ignored, which a shell cannot undo.
    env --default-signal=HUP "$@" >"$work/out" 2>"$work/err" &
    pid=$!
    wait_until lines_are "$work/out" ready "$n" || { fail "not $n ranks are ready: $*"; kill -9 $pid; }
}
for sig in USR1 USR2 HUP INT TERM; do
    start 2 strata-run -n 2 sh -c 'trap "echo got; exit 0" '$sig'; echo ready; while :; do sleep 0.02; done'
    kill -$sig $pid
    wait $pid
    check "SIG$sig ends well" test $? = 0
    check "SIG$sig reaches both ranks" test "$(grep -c got "$work/out")" = 2
done
for pair in TERM:143 INT:130; do
    start 2 strata-run -n 2 sh -c 'echo ready; exec sleep '$mark
    kill -${pair%:*} $pid
    wait $pid
    check "SIG${pair%:*} ends ranks that do not catch it" test $? = ${pair#*:}
    nobody_runs "sleep $mark"
done
# One rank shows that the first signal has come, and stays; the other ignores it.
start 2 strata-run -n 2 sh -c 'if [ $PMIX_RANK = 0 ]; then trap "echo asked" TERM; else trap "" TERM; fi
    echo ready; while :; do sleep 0.02; done'
kill -TERM $pid
check "the first signal reaches a rank" wait_until file_has "$work/out" asked
check "strata-run waits for ranks that were asked once" in_state "$pid" RSD
kill -TERM $pid
wait $pid
check "asked twice, ranks that will not go are killed" test $? = 143
# Ranks count into files of their own, which needs nobody to pass output on, a byte for a tick. They start no process: a shell
# that is stopped between vfork and exec of its child is not in state T.
start 2 strata-run -n 2 bash -c 'echo "ready $$"
    while :; do
        printf . >>"$0/ticks$PMIX_RANK"
        for ((i = 0; i < 10000; i++)); do :; done
    done' "$work"
ranks=$(sed -n 's/^ready //p' "$work/out")
for rank in $ranks; do check "rank $rank runs" wait_until in_state "$rank" RSD; done
kill -TSTP $pid
for rank in $ranks $pid; do check "SIGTSTP stops process $rank" wait_until in_state "$rank" T; done
ticks() { stat -c %s "$work/ticks$1" 2>/dev/null || echo 0; }
more_ticks() { [ "$(ticks "$1")" -gt "$2" ]; } # RANK NUMBER
a=$(ticks 0) b=$(ticks 1)
kill -CONT $pid
check "SIGCONT continues rank 0" wait_until more_ticks 0 "$((a + 3))"
check "SIGCONT continues rank 1" wait_until more_ticks 1 "$((b + 3))"
kill -INT $pid
wait $pid
check "SIGINT ends ranks that were stopped" test $? = 130

# ---- strata-run itself is killed: no process and no file outlives it
start 3 strata-run -n 3 sh -c 'sleep '$mark' & echo ready; exec sleep '$mark
kill -9 $pid
wait $pid 2>/dev/null
nobody_runs "sleep $mark"; no_files_soon
start 2 strata-run -n 2 sh -c 'timeout 80000 sh -c "echo ready; exec sleep '$mark'"; :'
kill -9 $pid
wait $pid 2>/dev/null
nobody_runs "sleep $mark"; no_files_soon
# A folder whose owner died with its guard is removed by the next run; a living one's is not.
mkdir "$TMPDIR/strata-run.$(id -u).stale0"
expect_status 0 strata-run -n 1 true; no_files

# ---- programs that join the job
probe=$STRATA_BUILD/tests/programs/launch_probe
expect_status 0 strata-run -n 4 "$probe" fence; out_has "^rank 3 of 4$"
expect_status 0 strata-run -n 2 "$probe" twice
expect_status 7 strata-run -n 3 "$probe" exit 1 7; err_has "rank 1 .* exited with status 7 before finalize"
expect_status 1 strata-run -n 3 "$probe" exit 1 0; err_has "rank 1 .* exited with status 0 before finalize"
for n in 2 3; do
    expect_status 1 strata-run -n $n "$probe" return 1 0; err_has "rank 1 .* exited with status 0 before finalize"
done
expect_status 7 strata-run -n 3 "$probe" return 0 7; err_has "rank 0 .* exited with status 7 before finalize"
expect_status 1 strata-run -n 2 "$probe" return -1 0; err_has "rank [01] .* exited with status 0 before finalize"
# PMIx_Finalize does not wait for a launcher that is late: its ranks have ended all the same as they should.
expect_status 0 strata-run -n "$(form 24 64)" "$probe" late
expect_status 137 strata-run -n 3 "$probe" kill 0 9; err_has "rank 0 .* killed by signal 9"
expect_status 142 strata-run -n 3 "$probe" kill 2 14; err_has "signal 14"
expect_status 6 strata-run -n 3 "$probe" abort 2 6; err_has "rank 2 .* aborted the job with status 6: the test wants it"
expect_status 137 strata-run -n 4 --keep-going "$probe" survive 1 9
check "every rank left is told" test "$(grep -c 'peer failed' "$work/out")" = 3
err_has "was killed by signal 9 (Killed)$"
expect_status 0 strata-run -n 1 strata-run -n 2 "$probe" fence; out_has "^rank 1 of 2$" # one inside another
no_files

# ---- a file system without locks
printf '#include <errno.h>\nint flock(int fd, int how) { (void)fd, (void)how; errno = ENOSYS; return -1; }\n' >"$work/flock.c"
if [ -z "${SANITIZER_FLAGS-}" ]; then
    expect_status 0 "${CC:-cc}" -shared -fPIC -o "$work/flock.so" "$work/flock.c"
    expect_status 0 env LD_PRELOAD="$work/flock.so" strata-run -n 2 "$probe" fence
    no_files
fi

# ---- a full disk, no disk
expect_status 1 env TMPDIR="$work/none" strata-run -n 1 true; err_has "cannot make a folder"
mkdir "$work/small"
if mount -t tmpfs -o size=16k tmpfs "$work/small" 2>/dev/null; then
    expect_status 0 env TMPDIR="$work/small" strata-run -n 3 "$probe" fence; out_has "^rank 2 of 3$"
    umount "$work/small"
fi
# A launcher that is announced and not there: no rank may go on by itself.
expect_status 99 env PMIX_NAMESPACE=gone PMIX_RANK=0 PMIX_SERVER_URI2="gone.0;tcp4://127.0.0.1:9" "$probe" fence
err_has "PMIx_Init failed"
finish
