#!/bin/bash
# Two machines under Slurm: srun --mpi=pmix, a slurmd on each, slurmctld on the first, munge. Each machine has a network namespace, a host
# name and a folder for temporary files of its own. Ranks of one machine use sm, of two tcp, without a parameter.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
for program in munged slurmctld slurmd srun sinfo; do
    command -v $program >/dev/null || skip "$program is not installed (Debian: slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)"
done
count=$(form 20000 200000)
say_form "$count of 200000 messages"
veth eth0
for m in 1 2; do network $m eth0 there 10.77.0.$m/24 || skip "eth0 cannot be set up"; done
wait_until link_is eth0 UP

state=$work/slurm
daemons=()
steps() { # step daemons of this Slurm: they hold its configuration in their environment
    local pid
    for pid in $(pgrep slurmstepd); do grep -qzF "$state" "/proc/$pid/environ" 2>/dev/null && echo "$pid"; done
}
stop() {
    local pid
    for _ in $(seq 100); do [ -z "$(steps)" ] && break; sleep 0.1; done
    for pid in $(steps) "${daemons[@]}"; do kill -9 "$pid" 2>/dev/null; done
}
trap 'stop; machines_remove $space; wait; rm -rf "$work"' EXIT
chmod 755 "$work" "$TMPDIR"
mkdir -p "$state"/{ctld,tmp.machine1,tmp.machine2,spool.machine1,spool.machine2}
head -c 1024 /dev/urandom >"$state/munge.key"
chmod 600 "$state/munge.key"
cat >"$state/slurm.conf" <<CONF
ClusterName=strata-cluster
SlurmctldHost=machine1(10.77.0.1)
SlurmctldPort=20817
SlurmdPort=20818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$state/munge.socket
CredType=cred/munge
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/spool.%n
TmpFS=$state/tmp.%n
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.%n.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=machine1 NodeAddr=10.77.0.1 CPUs=4 State=UNKNOWN
NodeName=machine2 NodeAddr=10.77.0.2 CPUs=4 State=UNKNOWN
PartitionName=test Nodes=machine[1-2] Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
CONF
export SLURM_CONF=$state/slurm.conf
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no pmix plugin (Debian: slurm-wlm-basic-plugins)"
daemon() { # NAME MACHINE PROGRAM...
    "$work/on" "${@:2}" >"$state/$1.out" 2>&1 </dev/null &
    daemons+=($!)
}
daemon munged 1 munged --foreground --force --key-file="$state/munge.key" --socket="$state/munge.socket" \
    --pid-file="$state/munged.pid" --log-file="$state/munged.log" --seed-file="$state/munged.seed"
wait_until test -S "$state/munge.socket"
daemon slurmctld 1 slurmctld -D -f "$SLURM_CONF"
# A network namespace has a /sys of its own, without the control groups that slurmd looks for.
awk '$2 ~ "^/sys/fs/cgroup" { print $3, $2, $4 }' /proc/self/mounts >"$state/cgroups"
cat >"$state/with_cgroups" <<'END'
#!/bin/bash
while read -r type place options; do
    mkdir -p "$place"
    if [ "$type" = tmpfs ]; then mount -t tmpfs none "$place"; else mount -t "$type" -o "$options" none "$place"; fi || exit
done <"$1"
shift
exec "$@"
END
chmod +x "$state/with_cgroups"
for m in 1 2; do
    daemon slurmd$m $m "$state/with_cgroups" "$state/cgroups" slurmd -D -N machine$m -f "$SLURM_CONF"
done
are_up() { [ "$("$work/on" 1 sinfo -h -o '%t %D')" = "idle 2" ]; }
if ! wait_until are_up; then
    cat "$state"/*.log "$state"/*.out
    fail "Slurm did not come up"
    finish
fi
job() { # RANKS PROGRAM...
    run "$work/on" 1 timeout -k 5 "${job_limit:-120}" srun --mpi=pmix --overcommit -N 2 -n "$1" --distribution=block "${@:2}"
    [ "$status" = 0 ] || cat "$work/err"
}
job 4 "$STRATA_BUILD/tests/programs/launch_probe" fence
check "four ranks start" grep -q '^rank 3 of 4$' "$work/out"
job 2 strata-conformance --only messages/basic/short_message
check "a case is run and does not fail" grep -qE '^1 cases passed, 0 failed' "$work/out"
export STRATA_MCA_mca_base_report_transports=text
job 4 "$STRATA_BUILD/tests/programs/traffic" mixed "$count" 50 2
check "traffic ends well" test "$status" = 0
check "all has arrived" grep -q "^mixed $count " "$work/out"
check "the machines are two, by tcp" grep -qE 'path 1 of 1 by tcp.* device TCP to 10\.77\.0\.[12],' "$work/err"
check "inside a machine: sm" grep -q 'path 1 of 1 by sm' "$work/err"
finish
