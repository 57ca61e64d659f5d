#!/bin/bash
# What strata-run takes from its caller and hands to the ranks: signals, host names, limits; habits of mpirun; programs that cannot
# join the job.
. "$STRATA_SOURCE/tests/integration/lib.sh"
probe=$STRATA_BUILD/tests/programs/launch_probe

# ---- signals: dispositions and masks of the caller
expect_status 3 env --ignore-signal=CHLD strata-run -n 2 sh -c 'exit 3'
expect_status 124 env --ignore-signal=CHLD strata-run -n 2 --timeout 0.5 sleep 90000
all=CHLD,USR1,USR2,PIPE,TERM,INT,QUIT,TTOU,TTIN,TSTP,CONT,XFSZ,RTMIN
expect_status 0 env --ignore-signal=$all --block-signal=$all strata-run -n 2 grep -E '^Sig(Ign|Blk)' /proc/self/status
# Signals 32 and 33 are the C library's, which lets nobody change them.
check "ranks ignore and block nothing" lines_are "$work/out" '^Sig(Ign|Blk):[[:space:]]*0+[0189]?0{7}$' 4
expect_status 0 env --ignore-signal=HUP strata-run -n 1 grep -E '^SigIgn' /proc/self/status
check "under nohup ranks ignore SIGHUP, and nothing else" lines_are "$work/out" '^SigIgn:[[:space:]]*0+[0189]?0{6}1$' 1

# ---- host names
for name in h node01 a-9.b.example "$(printf 'h%.0s' {1..57})" "$(printf 'h%.0s' {1..64})" "$(printf 'h%.0s' {1..60})1234"; do
    if unshare --uts true 2>/dev/null; then
        expect_status 0 unshare --uts sh -c 'hostname "$0"; exec strata-run -n 3 "$1" fence' "$name" "$probe"
        check "$name: three ranks" lines_are "$work/out" '^rank [012] of 3$' 3
    fi
done

# ---- a limit of the length of files
expect_status 0 bash -c 'ulimit -f 4000; exec strata-run -n 3 "$0" fence' "$probe"
check "a job under ulimit -f" lines_are "$work/out" '^rank [012] of 3$' 3

# ---- libpmix's memory in a rank: settings of its own unless the user has some, and they take effect
shows='echo $PMIX_MCA_pmix_max_events $PMIX_MCA_bfrops'
expect_status 0 strata-run -n 2 sh -c "$shows"; check "small by default" lines_are "$work/out" '^128 \^v12,v20,v21$' 2
expect_status 0 env PMIX_MCA_pmix_max_events=300 strata-run -n 1 -x PMIX_MCA_bfrops=^v12 sh -c "$shows"
check "the user's settings stay" lines_are "$work/out" '^300 \^v12$' 1
expect_status 0 strata-run -n 1 "$probe" heap; small=$(sed -n 's/^heap //p' "$work/out")
expect_status 0 strata-run -n 1 -x PMIX_MCA_pmix_max_events=512 -x PMIX_MCA_bfrops=^none "$probe" heap
large=$(sed -n 's/^heap //p' "$work/out") # 90 kB more with libpmix 4.2; a sanitizer's heap says 0
[ "$large" = 0 ] || check "the heap of a rank is $small bytes, $large without the settings" test $((large - small)) -ge 40000

# ---- --mpi: the user's settings stay, those by -x too
mkdir "$work/embed"
: >"$work/embed/mca_pml_strata.so"
export STRATA_EMBED_DIR=$work/embed
shows='echo $OMPI_MCA_pml $OMPI_MCA_mca_base_component_path'
expect_status 0 strata-run -n 1 --mpi sh -c "$shows"
check "--mpi" lines_are "$work/out" "^strata $work/embed:SYSTEM_DEFAULT\$" 1
expect_status 0 env OMPI_MCA_pml=cm strata-run -n 1 --mpi -x OMPI_MCA_mca_base_component_path=/mine sh -c "$shows"
check "--mpi with settings" lines_are "$work/out" "^cm $work/embed:/mine\$" 1
expect_status 0 strata-run -n 1 --mpi -x OMPI_MCA_pml=ob1 sh -c "$shows"
check "--mpi with -x" lines_are "$work/out" "^ob1 $work/embed:SYSTEM_DEFAULT\$" 1
unset STRATA_EMBED_DIR

# ---- one program of a rank after the other
expect_status 99 strata-run -n 2 sh -c '"$0" fence && "$0" fence' "$probe"
err_has "left the job already"

# ---- habits of mpirun
expect_status 0 strata-run -np 2 --mca btl=self,sm -mca btl_self_priority=3 sh -c 'echo $STRATA_MCA_btl,$STRATA_MCA_btl_self_priority'
check "-np, NAME=VALUE" lines_are "$work/out" '^self,sm,3$' 2
mkdir "$work/there"
printf '#!/bin/sh\npwd; echo "$PWD"\n' >"$work/there/place"
chmod +x "$work/there/place"
expect_status 0 strata-run -n 1 --wdir "$work/there" ./place; check "--wdir" lines_are "$work/out" "^$work/there\$" 2
expect_status 2 strata-run -n 1 --wdir "$work/none" true; err_has "--wdir $work/none: No such file"
for hosts in "--host a" "--host=a,b" "-H a" "--hostfile f" "-machinefile f"; do
    # shellcheck disable=SC2086 # words
    expect_status 2 strata-run -n 1 $hosts true; err_has "use Open MPI's mpirun, or srun"
done
expect_status 2 strata-run -n 1 --host a:2,b true; err_has '"srun --mpi=pmix -w a,b -n N PROGRAM"'
expect_status 2 strata-run -n 1 --hostfile f true; err_has '"mpirun --hostfile f -np N PROGRAM"'
expect_status 2 strata-run -n 1 true : -n 1 true; err_has "several programs"
expect_status 0 strata-run -n 1 echo : -x; out_has '^: -x$'
expect_status 2 strata-run -n 1 --map-by board true; err_has "must be one of slot, core, numa, socket"

# ---- bindings, on machines that hwloc is told of: two processors of this one
if taskset -c 0,1 true 2>/dev/null; then
    bound() { # MACHINE OPTIONS EXPECTED...: the processors of ranks 0 to 3
        local machine=$1 options=$2 rank=0
        shift 2
        # shellcheck disable=SC2086 # words
        expect_status 0 env HWLOC_SYNTHETIC="$machine" taskset -c 0,1 strata-run -n 4 --report-bindings $options \
            sh -c 'taskset -cp $$ | sed "s/.*: /$PMIX_RANK: /"'
        for cpus in "$@"; do
            out_has "^$rank: $cpus\$"
            err_has "rank $rank on .* is bound to processors ${cpus/,/-}\$"
            rank=$((rank + 1))
        done
    }
    bound "pack:1 core:2 pu:1" "--bind-to core" 0 1 0 1
    bound "pack:1 core:1 pu:2" "--bind-to core" 0,1 0,1 0,1 0,1
    bound "pack:1 core:1 pu:2" "--bind-to hwthread" 0 1 0 1
    bound "pack:2 core:1 pu:1" "--map-by core --bind-to socket" 0 1 0 1
    bound "pack:1 [numa] core:2 pu:1" "--bind-to numa" 0,1 0,1 0,1 0,1
    expect_status 0 env HWLOC_SYNTHETIC="pack:1 core:2 pu:1" taskset -c 0,1 strata-run -n 2 --display-map true
    err_has "rank 1 on .* is bound to processors 1"
    expect_status 0 strata-run -n 1 --bind-to none --display-map true; err_has "rank 0 on .* is not bound"
fi

# ---- programs of libraries that do not join
if command -v mpicc.openmpi >/dev/null && command -v mpicc.mpich >/dev/null; then
    printf '#include <mpi.h>\nint main(int c, char **v) { return MPI_Init(&c, &v) || MPI_Finalize(); }\n' >"$work/mpi.c"
    for kind in openmpi mpich; do
        mpicc.$kind -o "$work/$kind" "$work/mpi.c"
        run env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 strata-run -n 2 "$work/$kind"
        err_has "does not join a job of strata-run"
        run env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 strata-run -n 1 "$work/$kind"
        check "one rank is one job" test "$(grep -c "does not join" "$work/err")" = 0
    done
fi
no_files
finish
