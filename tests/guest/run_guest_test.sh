#!/bin/bash
# tests/guest/run: what the command gets, what comes back, what stays, and what happens when something goes wrong.
# short form: not run
. "$STRATA_SOURCE/tests/guest/host_lib.sh"
is() { # description wanted got
    check "$1: \"$3\" instead of \"$2\"" test "$2" = "$3"
}

# ---- several at the same time, which on a fresh build folder also make the image; a command's output and its end
pids=()
for i in 1 2 3; do
    "$guest" sh -c "echo $i; exit 1$i" >"$work/out$i" 2>"$work/err$i" </dev/null &
    pids+=($!)
done
for i in 1 2 3; do
    wait "${pids[i - 1]}"
    status=$?
    if [ "$status" = 77 ]; then cat "$work/err$i" && exit 77; fi
    is "status of the ${i}th" "1$i" "$status"
    is "output of the ${i}th" "$i" "$(cat "$work/out$i")"
done
check "one image" test "$(find "${STRATA_GUEST_CACHE:-$STRATA_BUILD/guest}" -name vmlinux | wc -l)" = 1

# ---- what the command gets: arguments, folder, environment, devices; binary output of both streams, whole
mkdir "$work/folder" "$work/kept"
cd "$work/folder" || exit 1
echo before >../file
cat >program <<'END'
printf '<%s>' "$@"; echo
pwd; cat ../file; echo "$STRATA_GUEST_A $COLOUR $SHAPE ${UNNAMED-none}"; ulimit -l; id -u; hostname; uname -s
read -r line || echo "no input"
END
expect_status 0 env STRATA_GUEST_A=passed COLOUR=blue UNNAMED=1 "$guest" -x COLOUR --env 'SHAPE=a  "square"' \
    bash ./program 'a b' '' "it's" '$x' '*'
is "what the command gets" "<a b><><it's><\$x><*> $work/folder before passed blue a  \"square\" none unlimited 0 node1 Linux no input " \
    "$(tr '\n' ' ' <"$work/out")"
head -c 3000000 /dev/urandom >random
expect_status 0 "$guest" sh -c 'cat random; cat random random >&2'
check "3 MB of stdout" cmp -s random "$work/out"
check "6 MB of stderr" cmp -s <(cat random random) "$work/err"

# ---- what stays: only what is written below --out
expect_status 0 "$guest" --out "$work/kept" sh -c "echo in >../file && echo in >new && rm random && cat ../file &&
    mkdir '$work/kept/sub' && echo one >'$work/kept/sub/result' && echo two >>'$work/kept/sub/result' && mv '$work/kept/sub' '$work/kept/dir'"
is "a file changed in the guest" in "$(cat "$work/out")"
is "the same file here" before "$(cat "$work/file")"
check "a new file vanished, a removed one did not" test ! -e new -a -s random
is "what was written below --out" "one two " "$(tr '\n' ' ' <"$work/kept/dir/result")"

# ---- ends: signals, what cannot be run, time-outs; output until then is there
expect_status 137 "$guest" sh -c 'echo before; kill -KILL $$'; out_has '^before$'
expect_status 139 "$guest" sh -c 'kill -SEGV $$'
expect_status 127 "$guest" no-such-program; err_has "no-such-program: not found"
expect_status 126 "$guest" /etc/passwd; err_has "Permission denied"
expect_status 124 "$guest" --timeout 15 sh -c 'echo before; sleep 1000'; out_has '^before$'; err_has "timed out after 15 s"
expect_status 125 "$guest" sh -c 'echo before; sleep 1; echo c >/proc/sysrq-trigger; sleep 100'
out_has '^before$'; err_has "died while the command ran"; err_has "console: .*sysrq triggered crash"
expect_status 125 "$guest" --memory 40 true; err_has "did not boot"
expect_status 125 "$guest" --netem "loss nonsense" true; err_has "did not boot"; err_has "Unknown loss parameter: nonsense"

# ---- wrong usage, missing programs
expect_status 2 "$guest"; err_has "CMD is missing"
expect_status 2 "$guest" --nodes 3 true; err_has "1 or 2"
expect_status 2 "$guest" --nodes 2 --two-devices true; err_has "for one node"
expect_status 2 "$guest" --timeout soon true; err_has "not a number"
expect_status 2 "$guest" --timeout; err_has "value is missing"
expect_status 2 "$guest" --out "$work/none" true; err_has "no such folder"
expect_status 2 "$guest" -x 1=2 true; err_has "not a variable"
expect_status 2 "$guest" --no-such-option true; err_has "no such option"
expect_status 0 "$guest" --help; out_has "Exit status"
mkdir "$work/bin"
for p in bash env dirname realpath uname; do ln -s "$(command -v $p)" "$work/bin/"; done
PATH=$work/bin "$work/bin/bash" "$guest" true >"$work/out" 2>"$work/err" </dev/null
is "status without QEMU" 77 $?
err_has "SKIP: programs are missing.* qemu-system-x86"

# ---- nothing is left behind, however it ends
no_files
for signal in TERM INT KILL; do
    rm "$work/out"
    # In the background a shell makes children ignore INT, and bash cannot undo that: env does.
    env --default-signal=INT "$guest" --nodes 2 sh -c 'echo ready; sleep 1000' >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    for ((i = 0; i < 1200; i++)); do
        if [ -s "$work/out" ]; then break; fi
        sleep 0.1
    done
    check "ready before SIG$signal" test -s "$work/out"
    check "two guests run" test "$(pgrep -fc "qemu.*$TMPDIR/")" = 2
    kill -$signal $pid
    wait $pid 2>/dev/null
    status=$?
    is "status after SIG$signal" "$((128 + $(kill -l $signal)))" $status
    check "nothing is left after SIG$signal" soon_gone
done
finish
