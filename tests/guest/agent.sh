#!/bin/bash
# On node 2: serves one connection of on-node, which is stdin and stdout. Three make a command: `run` brings it, ends it when
# the connection closes and sends its exit status; `stdout` and `stderr` carry what it prints, through FIFOs, so that a reader
# sees the end when the last process that has them open is gone.
set -u
exec 2>>/run/guest/error
field() { IFS= read -r -d '' "$1"; }
what='' id='' folder='' words=''
field what && field id || exit 0 # connected only to see that we are there
fifo=/run/guest-agent/$id
mkfifo "$fifo.stdout" "$fifo.stderr" 2>/dev/null # whoever is first
case $what in
stdout | stderr)
    exec cat "$fifo.$what" ;;
run)
    field folder && field words || exit 1
    set -m
    # shellcheck disable=SC2016 # that shell's arguments
    env -i bash -c '. /run/guest/environment.sh; cd "$1" 2>/dev/null || cd /; exec bash -c "$2"' on-node "$folder" "$words" \
        </dev/null >"$fifo.stdout" 2>"$fifo.stderr" &
    command=$!
    {
        read -r _ # returns when the other side is gone
        kill -TERM -- -$command
        sleep 2
        kill -KILL -- -$command
    } 2>/dev/null <&0 &
    watcher=$!
    status=0
    wait $command || status=$?
    kill -KILL -- -$watcher
    echo "$status"
    rm -f "$fifo.stdout" "$fifo.stderr" ;;
esac
