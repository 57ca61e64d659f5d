#!/usr/bin/env bash
# Channels between processes that are started apart (tests/programs/channel_link.c): by port and by path, many to one, wrong and missing
# secrets, strangers, callers that are silent or slow, a process that dies.
set -u
# shellcheck disable=SC1091
. "$STRATA_SOURCE/tests/support/form.sh"
# shellcheck disable=SC1091
. "$STRATA_SOURCE/tests/support/wait.sh"
program=$STRATA_BUILD/tests/programs/channel_link
dir=$(mktemp -d) || exit 1
pids=()
clean() {
    kill "${pids[@]}" 2>/dev/null
    wait
    rm -rf "$dir"
}
trap clean EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 5 "$dir"/* >&2
    exit 1
}
export STRATA_CHANNEL_SECRET='a secret of some length'
unset STRATA_CHANNEL_SECRET_FILE

start() { # ARGS...: a process that listens; sets $address
    rm -f "$dir/listener"
    timeout "$job_limit" "$program" "$@" >"$dir/listener" 2>"$dir/listener.err" &
    pids=($!)
    listening() { grep -q '^listens at' "$dir/listener"; }
    wait_until listening || fail "$*: it does not listen"
    address=$(sed -n 's/^listens at //p' "$dir/listener")
}
finish() { # it ends well
    local status=0
    wait "${pids[0]}" || status=$?
    pids=()
    [ "$status" = 0 ] || fail "the one that listens ended with $status"
}
call() { timeout "$job_limit" "$program" connect "$address" "$@"; }

# Many to one, at one port. The numbers are consecutive: the program checks it.
n=$(form 6 130)
say_form "$n processes connect to one"
start listen 127.0.0.1:0 "$n"
callers=()
for ((i = 0; i < n; i++)); do
    call 20 >"$dir/caller.$i" 2>&1 &
    callers+=($!)
done
for i in "${callers[@]}"; do wait "$i" || fail "a caller failed"; done
finish
[ "$(cat "$dir"/caller.* | grep -c '^all came back')" = "$n" ] || fail "messages are missing"
[ "$(sed -n 's/^number //p' "$dir"/caller.* | sort -n | tr '\n' ' ')" = "$(seq -s ' ' "$n") " ] || fail "the numbers"
grep -q "^served $n\$" "$dir/listener" || fail "it has not served all"
rm -f "$dir"/caller.*

# A path, whose name is left from a process that died; the secret from a file.
printf 'another secret, in a file\n' >"$dir/secret"
chmod 600 "$dir/secret"
mkdir "$dir/at"
start listen "$dir/at/socket" 1
kill -9 "$(pgrep -P "${pids[0]}")"
wait "${pids[0]}" 2>/dev/null
[ -S "$dir/at/socket" ] || fail "no name is left"
unset STRATA_CHANNEL_SECRET
export STRATA_CHANNEL_SECRET_FILE=$dir/secret
start listen "$dir/at/socket" 1
call 20 >"$dir/out" 2>&1 || fail "by path: $(cat "$dir/out")"
finish
[ ! -e "$dir/at/socket" ] || fail "the name is left"
rmdir "$dir/at"

# Who does not know the secret, or says nothing that makes sense, is refused; the next is taken.
start listen 127.0.0.1:0 1
STRATA_CHANNEL_SECRET='not the right one' call 1 >"$dir/out" 2>&1 && fail "a wrong secret was taken"
grep -q 'another secret' "$dir/out" || fail "a wrong secret: $(cat "$dir/out")"
exec 9<>"/dev/tcp/127.0.0.1/${address##*:}" && head -c 200 /dev/zero >&9
exec 9>&-
call 20 >"$dir/out" 2>&1 || fail "after strangers: $(cat "$dir/out")"
finish
[ "$(grep -c 'was refused' "$dir/listener.err")" = 2 ] || fail "two were refused: $(cat "$dir/listener.err")"

# A secret counts to its last byte.
for i in 1 2; do
    printf '%2000s%d\n' '' "$i" >"$dir/long.$i"
    chmod 600 "$dir/long.$i"
done
STRATA_CHANNEL_SECRET_FILE=$dir/long.1 start listen 127.0.0.1:0 1
STRATA_CHANNEL_SECRET_FILE=$dir/long.2 call 1 >"$dir/out" 2>&1 && fail "a secret with another end was taken"
STRATA_CHANNEL_SECRET_FILE=$dir/long.1 call 20 >"$dir/out" 2>&1 || fail "a long secret: $(cat "$dir/out")"
finish

# Callers that say nothing hold up nobody, and keep a bounded number of descriptors. On a busy machine those that come after them may
# take more than the 5 s after which the silent are refused: three times are tried.
for try in 1 2 3; do
    start listen 127.0.0.1:0 1
    silent=()
    for ((i = 0; i < 300; i++)); do
        exec {fd}<>"/dev/tcp/127.0.0.1/${address##*:}" && silent+=("$fd")
    done
    call 1 >"$dir/out" 2>&1 || fail "after silent ones: $(cat "$dir/out")"
    finish
    for fd in "${silent[@]}"; do exec {fd}>&-; done
    [ "$(grep -c 'was refused' "$dir/listener.err")" -ge 45 ] || fail "silent ones are kept: $(cat "$dir/listener.err")"
    grep -q 'it was silent$' "$dir/listener.err" || break
    [ "$try" -lt 3 ] || fail "silent ones hold up another"
done

# One whose context takes long to make, here because its file of parameters has no end, holds up nobody, and has more than 5 s for it.
mkfifo "$dir/params"
start listen 127.0.0.1:0 2
exec 7<>"$dir/params" # nobody else has it open to write
STRATA_MCA_mca_param_files=$dir/params timeout "$job_limit" "$program" connect "$address" 5 >"$dir/slow" 2>&1 7>&- &
slow=$!
reads_parameters() { ls -l "/proc/$(pgrep -P "$slow")/fd" | grep -q "$dir/params\$"; }
wait_until reads_parameters || fail "the slow one does not begin: $(cat "$dir/slow")"
call 5 >"$dir/out" 2>&1 7>&- &
other=$!
wait_until file_has "$dir/listener" '^accepted 2' || fail "a slow one holds up another"
sleep "$(form 0 7)"
grep '^accepted 1' "$dir/listener" && fail "one that is not ready was accepted"
exec 7>&-
wait "$slow" || fail "the slow one: $(cat "$dir/slow")"
wait "$other" || fail "beside a slow one: $(cat "$dir/out")"
finish

refused() { # TEXT ARGS...
    local text=$1
    shift
    timeout "$job_limit" "$program" "$@" >"$dir/out" 2>&1 && fail "'$*' ended well"
    grep -q -e "$text" "$dir/out" || fail "'$*' said: $(cat "$dir/out")"
}
chmod 644 "$dir/secret"
refused 'others may read' listen 127.0.0.1:0 1
unset STRATA_CHANNEL_SECRET_FILE
refused 'need a secret: set STRATA_CHANNEL_SECRET' listen 127.0.0.1:0 1
export STRATA_CHANNEL_SECRET=short
refused 'it takes 16 or more' listen 127.0.0.1:0 1
export STRATA_CHANNEL_SECRET='a secret of some length'
refused 'is no address' listen nowhere 1
refused 'cannot listen at /' listen /no/such/folder/socket 1

# One of two dies: its channels end with the error, the other's go on to their end.
start survive 127.0.0.1:0
call 5 die >"$dir/died" 2>&1 &
victim=$!
number_is_given() { grep -q '^number 1' "$dir/died"; }
wait_until number_is_given || fail "the one that is to die does not join"
call 30 >"$dir/out" 2>&1 || fail "beside one that died: $(cat "$dir/out")"
wait "$victim"
finish
grep -q '^1: the peer failed' "$dir/listener" || fail "the one that died: $(cat "$dir/listener")"
grep -q '^2: ended' "$dir/listener" || fail "the other: $(cat "$dir/listener")"
echo "processes that were started apart have channels"
