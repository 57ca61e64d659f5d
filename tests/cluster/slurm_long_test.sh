#!/bin/bash
# Two machines under Slurm: srun --mpi=pmix, a slurmd on each, slurmctld on the first, munge. Each machine has a network namespace, a host
# name and a folder for temporary files of its own. Ranks of one machine use sm, of two tcp, without a parameter.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/slurm.sh"
missing=$(slurm_missing)
[ -z "$missing" ] || skip "$missing"
count=$(form 20000 200000)
say_form "$count of 200000 messages"
veth eth0
for m in 1 2; do network $m eth0 there 10.77.0.$m/24 || skip "eth0 cannot be set up"; done
wait_until link_is eth0 UP

state=$work/slurm
trap 'slurm_stop; machines_remove $space; wait; rm -rf "$work"' EXIT
mkdir -p "$state"
chmod 755 "$work" "$TMPDIR"
slurm_configure 'machine1(10.77.0.1)' machine1=10.77.0.1 machine2=10.77.0.2
slurm_has_pmix || skip "this Slurm has no pmix plugin (Debian: slurm-wlm-basic-plugins)"
slurm_control "$work/on" 1
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
    slurm_daemon slurmd$m "$work/on" $m "$state/with_cgroups" "$state/cgroups" slurmd -D -N machine$m -f "$SLURM_CONF"
done
if ! wait_until slurm_idle 2 "$work/on" 1; then
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
# Many cases, with a fence between any two.
job 4 strata-conformance --only "$(form messages/basic/ messages/)"
check "cases are run and none fails" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
export STRATA_MCA_mca_base_report_transports=text
job 4 "$STRATA_BUILD/tests/programs/traffic" mixed "$count" 50 2
check "traffic ends well" test "$status" = 0
check "all has arrived" grep -q "^mixed $count " "$work/out"
check "the machines are two, by tcp" grep -qE 'path 1 of 1 by tcp.* device TCP to 10\.77\.0\.[12],' "$work/err"
check "inside a machine: sm" grep -q 'path 1 of 1 by sm' "$work/err"
finish
