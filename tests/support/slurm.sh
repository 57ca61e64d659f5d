# shellcheck shell=bash disable=SC2154,SC2119,SC2120
# Debian's Slurm for a test or benchmark, in the folder $state: configuration, keys, logs. Sourced, with tests/support/wait.sh before it.
PATH=$PATH:/usr/sbin
slurm_daemons=() # process ids

# Prints what of Slurm is not there.
slurm_missing() {
    local program
    for program in munged slurmctld slurmd srun sinfo; do
        command -v $program >/dev/null || { echo "$program is not installed (Debian: slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)" && return; }
    done
    [ "$(id -u)" = 0 ] || echo "slurmd must be started by root"
}

# Its step daemons: they hold its configuration in their environment.
slurm_steps() {
    local pid
    for pid in $(pgrep slurmstepd); do grep -qzF "$state" "/proc/$pid/environ" 2>/dev/null && echo "$pid"; done
}

slurm_stop() {
    local pid
    for _ in $(seq 100); do [ -z "$(slurm_steps)" ] && break; sleep 0.1; done
    for pid in $(slurm_steps); do kill -9 "$pid"; done
    for pid in $(printf '%s\n' "${slurm_daemons[@]}" | tac); do kill "$pid" 2>/dev/null; done
    for pid in "${slurm_daemons[@]}"; do
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
}

slurm_free_port() { # one that nobody listens on, below the kernel's own choices
    local port
    while port=$((10000 + RANDOM % 20000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
    done
}

# Writes $state/slurm.conf and munge's key, and exports SLURM_CONF. NODES: comma-separated names with their addresses.
slurm_configure() { # CONTROLLER(ADDRESS) NODE=ADDRESS...
    local controller=$1 node names=()
    shift
    mkdir -p "$state/ctld"
    head -c 1024 /dev/urandom >"$state/munge.key"
    chmod 600 "$state/munge.key"
    {
        printf '%s\n' ClusterName=strata-test "SlurmctldHost=$controller" "SlurmctldPort=$(slurm_free_port)" "SlurmdPort=$(slurm_free_port)" \
            SlurmUser=root SlurmdUser=root AuthType=auth/munge "AuthInfo=socket=$state/munge.socket" CredType=cred/munge \
            "StateSaveLocation=$state/ctld" "SlurmdSpoolDir=$state/spool.%n" "TmpFS=$state/tmp.%n" "SlurmctldPidFile=$state/slurmctld.pid" \
            "SlurmdPidFile=$state/slurmd.%n.pid" "SlurmctldLogFile=$state/slurmctld.log" "SlurmdLogFile=$state/slurmd.%n.log" \
            ProctrackType=proctrack/linuxproc TaskPlugin=task/none SelectType=select/cons_tres SelectTypeParameters=CR_CPU \
            MpiDefault=pmix ReturnToService=2 SlurmdParameters=config_overrides
        for node; do
            mkdir -p "$state/spool.${node%%=*}" "$state/tmp.${node%%=*}"
            echo "NodeName=${node%%=*} NodeAddr=${node#*=} CPUs=4 State=UNKNOWN"
            names+=("${node%%=*}")
        done
        echo "PartitionName=test Nodes=$(IFS=, && echo "${names[*]}") Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8"
    } >"$state/slurm.conf"
    export SLURM_CONF=$state/slurm.conf
}

slurm_daemon() { # NAME PROGRAM...
    "${@:2}" >"$state/$1.out" 2>&1 </dev/null &
    slurm_daemons+=($!)
}
# munged and slurmctld. PREFIX: runs a program on the controller.
slurm_control() { # [PREFIX...]
    slurm_daemon munged "$@" munged --foreground --force --key-file="$state/munge.key" --socket="$state/munge.socket" \
        --pid-file="$state/munged.pid" --log-file="$state/munged.log" --seed-file="$state/munged.seed"
    wait_until test -S "$state/munge.socket"
    slurm_daemon slurmctld "$@" slurmctld -D -f "$SLURM_CONF"
}

slurm_has_pmix() { srun --mpi=list 2>&1 | grep -q pmix; }
slurm_idle() { # NUMBER [PREFIX...]: so many nodes are up
    [ "$("${@:2}" sinfo -h -o '%t %D')" = "idle $1" ]
}

# This machine as the only node, on loopback.
slurm_alone() {
    local host
    host=$(hostname -s)
    slurm_configure "$host(127.0.0.1)" "$host=127.0.0.1"
    slurm_control
    slurm_daemon slurmd slurmd -D -f "$SLURM_CONF"
    wait_until slurm_idle 1 || { tail -5 "$state"/*.log "$state"/*.out && return 1; }
}
