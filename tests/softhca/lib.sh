# shellcheck shell=bash
# Shared by tests that run programs on softhca. Sourced. Sets $library, $preload, $work (a folder that
# goes away) and a fabric of the test's own; leaves with status 77 and the reason when there is nothing to test.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
skip() { echo "SKIPPED: $*"; exit 77; }

. "$STRATA_SOURCE/tests/support/preload.sh"
[ -f "$library" ] || skip "no libsofthca in this build"
# Leaks of the programs themselves are not softhca's.
preload=$first$library
export TSAN_OPTIONS="${TSAN_OPTIONS-}:die_after_fork=0"
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

work=$(mktemp -d "${TMPDIR:-/tmp}/strata-softhca.XXXXXX")
export SOFTHCA_FABRIC=${work##*.}-$$
pids=()
# Every process is under `timeout`, which hands the signal on and ends by itself if this script is killed.
clean() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    wait
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM

n_checks=0 n_failed=0
fail() { # what, files to show...
    n_failed=$((n_failed + 1))
    echo "FAILED: $1"
    shift
    local file
    for file in "$@"; do
        if [ -s "$file" ]; then grep -Eav '^$|^ *(local|remote) address:' "$file" | tail -n 40 | sed "s|^|    ${file##*/}: |"; fi
    done
}
checked() { # title, seconds when it began
    n_checks=$((n_checks + 1))
    echo "ok: $1, $(($(date +%s%N) / 1000000 - $2)) ms"
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# TCP ports by which programs find each other: below those that the kernel gives out, other ones for tests that run at the
# same time.
port=$((12000 + $$ * 61 % 18000))
listens() { # port
    local hex
    hex=$(printf ':%04X 0*:0000 0A' "$1")
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$hex"
}
next_port() {
    port=$((port + 1))
    while listens "$port"; do port=$((port + 1)); done
}

# On softhca, for SECONDS at most, or job_limit if that is more: nothing is judged by time.
soft() { # SECONDS PROGRAM ARGS...
    local limit=$(($1 < job_limit ? job_limit : $1))
    shift
    timeout -k 2 "$limit" env LD_PRELOAD="$preload" "$@" </dev/null
}
# The same in the background. A signal to $! ends the program; one to a function in the background ends only its subshell.
soft_behind() { # SECONDS PROGRAM ARGS...
    local limit=$(($1 < job_limit ? job_limit : $1))
    shift
    timeout -k 2 "$limit" env LD_PRELOAD="$preload" "$@" </dev/null &
}

# A server and its client, with the same arguments: pair SECONDS EXPRESSION LINES PROGRAM ARGS...
# Both have to succeed, and the client's output to have so many lines at least that match. @ in an argument is the port.
pair() {
    local limit=$1 expression=$2 lines=$3 server client=0 status=0 begin
    shift 3
    local title="$*" out=$work/client err=$work/server
    next_port
    set -- "${@//@/$port}"
    begin=$(now_ms)
    soft_behind "$limit" "$@" >"$err" 2>&1
    server=$!
    pids=("$server")
    listens_or_ended() { listens "$port" || ! kill -0 "$server"; }
    wait_until listens_or_ended
    soft "$limit" "$@" localhost >"$out" 2>&1 || client=$?
    if [ "$client" -ne 0 ]; then kill "$server" 2>/dev/null; fi
    wait "$server" || status=$?
    pids=()
    if [ "$client" -ne 0 ] || [ "$status" -ne 0 ]; then
        fail "$title: the client's status is $client, the server's $status" "$out" "$err"
    elif [ "$(grep -Ec "$expression" "$out")" -lt "$lines" ]; then
        fail "$title: fewer than $lines lines match '$expression'" "$out" "$err"
    else
        checked "$title" "$begin"
    fi
}

# A server and its client, which says where the server is as `-s ADDRESS` or so: both have to succeed. $talk_anew: after
# a client that failed the server is started anew as well.
talk_anew=no
talk() { # ADDRESS SERVER... -- CLIENT...
    local address=$1 server=() caller status=1 end=$((SECONDS + wait_limit)) begin pause=0.1
    shift
    begin=$(now_ms)
    while [ "$1" != -- ]; do server+=("${1//HOST/$address}") && shift; done
    shift
    caller=("${@//HOST/$address}")
    pids=()
    while [ "$status" -ne 0 ] && [ "$SECONDS" -lt "$end" ]; do
        if [ "${#pids[@]}" = 0 ]; then
            next_port
            soft_behind 30 "${server[@]//@/$port}" >"$work/server" 2>&1
            pids=($!)
        fi
        # Until it listens, which nothing but its manager knows.
        sleep "$pause"
        status=0
        soft 30 "${caller[@]//@/$port}" >"$work/client" 2>&1 || status=$?
        [ "$status" = 0 ] || kill -0 "${pids[0]}" 2>/dev/null || break
        if [ "$status" != 0 ] && [ "$talk_anew" = yes ]; then
            kill "${pids[0]}" 2>/dev/null
            wait "${pids[0]}"
            pids=() pause=$(awk "BEGIN { print 2 * $pause }")
        fi
    done
    if [ "${#pids[@]}" != 0 ]; then
        if [ "$status" -ne 0 ]; then kill "${pids[0]}" 2>/dev/null; fi
        wait "${pids[0]}" || status=$?
        pids=()
    fi
    if [ "$status" -eq 0 ]; then
        checked "${caller[*]//@/$port}" "$begin"
    else
        fail "${caller[*]//@/$port}: status $status" "$work/server" "$work/client"
    fi
}

# The end of a test of one program, whose output is in $work/out: 77 says that it cannot run here.
outcome() { # NAME STATUS
    cat "$work/out"
    [ "$2" != 77 ] || exit 77
    [ "$2" = 0 ] || fail "$1: status $2"
    n_checks=1
    finish
}

pingpong() { # PROGRAM ARGS...
    local program=$1
    shift
    pair 600 '^[0-9]+ iters in' 1 "$program" -p @ -d soft0 "$@"
}
perftest() { # SIZES PROGRAM ARGS...: so many sizes are to be reported
    local sizes=$1 program=$2
    shift 2
    # In cycles: on a busy machine perftest cannot say how fast the processor's clock goes, and makes all times inf.
    case $program in *_lat) set -- -C "$@" ;; esac
    pair 600 '^ *[0-9]+ +[0-9]+ +[0-9.]+' "$sizes" "$program" -F -p @ -d soft0 "$@"
}

# One program that has to succeed, and print a line that matches: single SECONDS EXPRESSION PROGRAM ARGS...
single() {
    local limit=$1 expression=$2 begin status=0
    shift 2
    begin=$(now_ms)
    soft "$limit" "$@" >"$work/out" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        fail "$*: status $status" "$work/out"
    elif ! grep -Eq "$expression" "$work/out"; then
        fail "$*: no line matches '$expression'" "$work/out"
    else
        checked "$*" "$begin"
    fi
}

# A process that was killed may take a moment to end.
no_socket() { ! grep -q "@softhca-.*-$SOFTHCA_FABRIC-" /proc/net/unix; }
finish() {
    if ls /dev/shm/*softhca* >/dev/null 2>&1; then fail "something is left in /dev/shm"; fi
    wait_until no_socket || fail "a socket is left: $(grep "$SOFTHCA_FABRIC" /proc/net/unix)"
    echo "$n_checks runs succeeded, $n_failed failed"
    [ "$n_failed" = 0 ]
    exit
}
