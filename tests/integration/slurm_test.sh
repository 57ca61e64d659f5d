#!/bin/bash
# The same binaries under Slurm's srun --mpi=pmix: one node on loopback, everything in a folder of the test.
. "$STRATA_SOURCE/tests/integration/lib.sh"
skip() { echo "skipped: $*"; exit 77; }
for program in munged slurmctld slurmd srun sinfo; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null ||
        skip "$program is not installed (Debian: slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)"
done
[ "$(id -u)" = 0 ] || skip "slurmd must be started by root"
PATH=$PATH:/usr/sbin

state=$work/slurm
daemons=()
steps() { # step daemons of this Slurm: they hold its configuration in their environment
    local pid
    for pid in $(pgrep slurmstepd); do grep -qzF "$state" "/proc/$pid/environ" 2>/dev/null && echo "$pid"; done
}
stop() {
    local pid
    for _ in $(seq 100); do [ -z "$(steps)" ] && break; sleep 0.1; done
    for pid in $(steps); do kill -9 "$pid"; done
    for pid in $(printf '%s\n' "${daemons[@]}" | tac); do kill "$pid" 2>/dev/null; done
    for pid in "${daemons[@]}"; do
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
}
trap 'stop; rm -rf "$work"' EXIT
free_port() { # one that nobody listens on, below the kernel's own choices
    local port
    while port=$((10000 + RANDOM % 20000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
    done
}
chmod 755 "$work" "$TMPDIR"
mkdir -p "$state/spool" "$state/ctld"
head -c 1024 /dev/urandom >"$state/munge.key"
chmod 600 "$state/munge.key"
host=$(hostname -s)
cat >"$state/slurm.conf" <<CONF
ClusterName=strata-test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$state/munge.socket
CredType=cred/munge
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/spool
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
CONF
export SLURM_CONF=$state/slurm.conf
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no pmix plugin (Debian: slurm-wlm-basic-plugins)"
munged --foreground --force --key-file="$state/munge.key" --socket="$state/munge.socket" --pid-file="$state/munged.pid" \
    --log-file="$state/munged.log" --seed-file="$state/munged.seed" >"$state/munged.out" 2>&1 &
daemons+=($!)
wait_until test -S "$state/munge.socket"
slurmctld -D -f "$SLURM_CONF" >"$state/slurmctld.out" 2>&1 &
daemons+=($!)
slurmd -D -f "$SLURM_CONF" >"$state/slurmd.out" 2>&1 &
daemons+=($!)
is_up() { sinfo -h -o %t | grep -q idle; }
if ! wait_until is_up; then
    tail -5 "$state"/*.log "$state"/*.out
    fail "Slurm did not come up"
    finish
fi

probe=$STRATA_BUILD/tests/programs/launch_probe
srun="srun --mpi=pmix --overcommit"
expect_status 0 $srun -n 1 "$probe" fence; out_has "^rank 0 of 1$"
expect_status 0 $srun -n 2 "$probe" fence; out_has "^rank 1 of 2$"
expect_status 0 $srun -n 4 "$probe" fence; out_has "^rank 3 of 4$"
expect_status 0 $srun -n 2 "$probe" twice
expect_status 0 $srun -n 4 "$STRATA_BUILD/docs/examples/ring"; out_has ": ok$"
if [ -x "$STRATA_BUILD/components/rte_pmix/tests/job_test" ]; then
    expect_status 0 $srun -n 3 "$STRATA_BUILD/components/rte_pmix/tests/job_test"
fi
run $srun --kill-on-bad-exit=1 -n 3 "$probe" kill 1 9
check "a killed rank ends the job" test "$status" -ne 0
# Not at once: srun forgets the status of a step that ends before it has heard of every launch, of which -v tells.
run $srun -v -n 3 sh -c 'until grep -q "tasks started" "$1"; do sleep 0.05; done; shift; exec "$@"' sh "$work/err" "$probe" abort 2 6
check "strata_abort ends the job" test "$status" -ne 0
finish
