#!/bin/bash
# In a guest, on each node, before each test of a batch: ends the processes that the test before left, empties /dev/shm and makes
# the network anew. The first call on a node only notes the processes that belong to the guest itself.
set -u
node=1
. /run/guest/settings
. "$(dirname "$0")/network.sh"
known=/run/guest/known-$node # processes of the guest itself
pids() { # of processes; kernel threads have no command line
    local dir first
    for dir in /proc/[0-9]*; do
        if read -r -d '' first 2>/dev/null <"$dir/cmdline" && [ -n "$first" ]; then echo "${dir#/proc/}"; fi
    done
}
if [ ! -e "$known" ]; then
    pids >"$known"
    exit
fi
spared=" $(tr '\n' ' ' <"$known")"
pid=$$
while [ "$pid" -gt 1 ]; do # this script and its parents
    spared="$spared$pid "
    while read -r field value; do
        [ "$field" != PPid: ] || pid=$value
    done <"/proc/$pid/status"
done
for pid in $(pids); do
    case $spared in *" $pid "*) ;; *) kill -KILL "$pid" 2>/dev/null ;; esac
done
rm -rf /dev/shm/*
network_remake
