#!/bin/bash
# In a guest, on node 1: runs the tests that batch.sh has listed, each in the state of a guest that has just booted. The folder
# $1, which batch.sh watches, has a folder N for the Nth test: its path in `test`; `begun`, `started`, `log` and `status` are
# written here.
set -u
here=$(dirname "$0")
export STRATA_IN_GUEST=1 TMPDIR=/tmp/strata-guest-batch
for folder in $(find "$1" -mindepth 1 -maxdepth 1 -type d | sort -V); do
    : >"$folder/begun"
    rm -rf "$TMPDIR"
    mkdir "$TMPDIR"
    {
        bash "$here/reset.sh"
        ! command -v on-node >/dev/null || on-node node2 bash "$here/reset.sh"
    } >>"$folder/log" 2>&1
    : >"$folder/started"
    setsid --wait bash "$(cat "$folder/test")" >>"$folder/log" 2>&1 </dev/null
    echo $? >"$folder/status.new"
    mv "$folder/status.new" "$folder/status"
done
