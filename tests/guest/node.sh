#!/bin/bash
# In the guest, on the host's file system: makes the network and its RDMA devices, then runs the command (node 1) or serves
# on-node (node 2). Started by init.sh. The control folder holds: settings, environment.sh, command.sh (from run); ready, status,
# error, stdout, stderr (for run).
set -eu
control=/run/guest
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
node=1 nodes=1
. "$control/settings"
here=$(cat "$control/source")
export PATH
exec 2>>"$control/error"

. "$here/network.sh"
ip link set lo up
printf '10.77.0.10 node1\n10.77.0.11 node2\n' >>/etc/hosts
echo "node$node" >/proc/sys/kernel/hostname
network_make
ulimit -l unlimited
ulimit -n "$(ulimit -Hn)"
if [ "$node" = 2 ]; then
    mkdir -p /run/guest-agent
    : >"$control/ready"
    exec busybox nc -ll -p 7077 -e "$here/agent.sh"
fi
if [ "$nodes" = 2 ]; then # run bounds the wait
    until (exec 3<>/dev/tcp/node2/7077) 2>/dev/null; do sleep 0.1; done
fi
: >"$control/ready"
set -m # a process group of its own
env -i bash "$control/command.sh" </dev/null >>"$control/stdout" 2>>"$control/stderr" &
status=0
wait $! || status=$?
echo "$status" >"$control/status.new"
mv "$control/status.new" "$control/status"
