#!/bin/bash
# Ranks that die, wrong plugins and parameters: one clear message, a clean end, nothing left behind.
# shellcheck disable=SC2154 # what lib.sh sets
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
# shellcheck disable=SC2154 # by lib.sh
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "three deaths under Strata" "five deaths under Strata and Open MPI's own pml")"
hostile=$programs/hostile
net=300 # seconds for a run: a safety net

# Whether each rank of the job has ended; mpirun is its parent and has not collected it.
ranks_have_ended() { # PID of mpirun
    local states
    states=$(ps -o stat= --ppid "$1") && ! grep -qv '^Z' <<<"$states"
}

# On a busy machine mpirun of Open MPI 4.1.4 itself may crash in PMIx_server_finalize after its ranks have ended, or wait
# there for ever for a mutex of PMIx's thread. The second is ended here.
end_stuck_mpirun() { # PID of the run
    local pid looks=0
    while [ $looks -lt 30 ] && sleeps_beside "$1"; do
        pid=$(ours "${mpirun##*/}" | head -n 1)
        if [ -n "$pid" ] && ranks_have_ended "$pid"; then looks=$((looks + 1)); else looks=0; fi
    done
    if [ $looks -eq 30 ] && kill -KILL "$pid" 2>/dev/null; then echo "mpirun(stuck)" >>"$work/out"; fi
}

# A run that must fail: broken TITLE MPIRUN'S ARGUMENTS...; its output in $work/out, its status in $status.
broken() {
    local title=$1 begin=$SECONDS run
    shift
    for _ in 1 2 3; do
        : >"$work/out"
        with "${pml:-strata}" "$net" "$@" >>"$work/out" 2>&1 &
        run=$!
        end_stuck_mpirun "$run"
        wait "$run"
        status=$?
        sed -i '/^\[warn\] Epoll/d' "$work/out" # libevent, in mpirun
        grep -q 'mpirun[.a-z]*(' "$work/out" || break
        echo "$title: mpirun itself crashed or did not end; once more"
    done
    n_checks=$((n_checks + 1))
    if grep -q 'mpirun[.a-z]*(' "$work/out"; then fail "$title: mpirun itself crashed or did not end, three times"; fi
    if [ "$status" -eq 0 ] || [ "$status" -ge 124 ] && [ "$status" -le 125 ]; then
        fail "$title: exit status $status after $((SECONDS - begin)) s"
        return
    fi
    if grep -qE 'Segmentation fault|Signal: (Seg|Bus|Abort)' "$work/out"; then fail "$title: something crashed"; fi
    nothing_left "$title"
    echo "ok: $title${pml:+ under $pml}: exit status $status, $((SECONDS - begin)) s"
}

# A message that concerns every rank is printed by rank 0, whose end ends the others, which wait 0.4 s: on a busy machine by both of two.
once=2
says() { # REGEX [MOST]: lines of the last run's output match, at most so many
    local n
    n=$(sed '/^prterun has exited/,/^---/d; /^-----*$/d' "$work/out" | grep -acE -- "$1") # PRRTE's own paragraph is not counted
    n_checks=$((n_checks + 1))
    if [ "$n" -lt 1 ] || [ "$n" -gt "${2:-1000}" ]; then fail "the output has '$1' $n times"; fi
}

# Files and processes of this job. Open MPI's names have the job's number, which its messages show: [[NUMBER,1],0].
leftovers() {
    local family
    ours "$hostile"
    for family in $(grep -oE '\[\[[0-9]+,' "$work/out" | tr -dc '0-9\n' | sort -u); do
        find /dev/shm -name "*$(printf '%x' "$family")000?*" -o -name "*strata*$family*"
    done
    comm -13 "$work/before" <(find /dev/shm -name '*strata*' | sort)
}

nothing_left() {
    local left
    local end=$((SECONDS + net))
    while left=$(leftovers) && [ -n "$left" ] && [ $SECONDS -lt $end ]; do sleep 0.1; done
    [ -n "$left" ] || return 0
    fail "$1: left behind: $(tr '\n' ' ' <<<"$left")"
    ours "$hostile" | xargs -r kill -KILL
}
find /dev/shm -name '*strata*' | sort >"$work/before"

echo "-- ranks that die"
full_form && deaths=("kill 1 blocking" "kill 0 blocking" "kill 1 nonblocking" "kill 0 typed" "kill 2 nonblocking") ||
    deaths=("kill 1 blocking" "kill 0 typed" "kill 2 nonblocking")
for what in "${deaths[@]}"; do
    for pml in $(form strata "ob1 strata"); do
        # shellcheck disable=SC2086 # words
        broken "$what" -n 3 "$hostile" $what
        # 137: mpirun learned of the death first. Else a survivor noticed, and ended the job with MPI_ERR_OTHER, which is 16.
        # mpirun's own message is not tested: this Open MPI's help messages get lost now and then ("Out of resource in show_help.c").
        n_checks=$((n_checks + 1))
        case $status in
            137) ;;
            16) if [ "$pml" = strata ]; then says "rank ${what//[^0-9]/} on host .* failed: .*"; fi ;;
            *) fail "$what: exit status $status under $pml, neither 137 nor 16" ;;
        esac
    done
done
pml=strata
broken "MPI_Abort" -n 3 "$hostile" abort
n_checks=$((n_checks + 1))
[ "$status" -eq 7 ] || fail "MPI_Abort(7): exit status $status"
broken "exit without MPI_Finalize" -n 3 "$hostile" exit
if [ "${EMBED_VERSION-4.1}" = 5.0 ]; then
    broken "MPIX_Comm_revoke" -n 3 "$hostile" revoke
    says 'MPIX_Comm_revoke of communicator [0-9]+ is not supported'
fi

echo "-- parameters and components"
broken "an unknown parameter" --mca pml_strata_btl_sm_eager_limt 4096 -n 2 "$hostile" talk
says 'pml_strata_btl_sm_eager_limt' $once
says 'did you mean.*pml_strata_btl_sm_eager_limit|nearest.*pml_strata_btl_sm_eager_limit'
printf '# ours\nbtl_vader_eager_limit = 4096\n pml_strata_btl_sm_ring_dta=1m # too much\n' >"$work/mca.conf"
OMPI_MCA_mca_base_param_files=$work/mca.conf broken "an unknown parameter in a file" -n 2 "$hostile" talk
says 'pml_strata_btl_sm_ring_dta .*pml_strata_btl_sm_ring_data.*mca.conf, line 3' $once
printf 'pml_strata_btl_sm_ring_data = banana\n' >"$work/mca.conf"
OMPI_MCA_mca_base_param_files=$work/mca.conf broken "a bad value in a file" -n 2 "$hostile" talk
says 'banana' $once
broken "a value that is no size" --mca pml_strata_btl_sm_eager_limit banana -n 2 "$hostile" talk
says 'banana' $once
broken "an unknown transport" --mca pml_strata_btl carrier_pigeon -n 2 "$hostile" talk
says 'carrier_pigeon' $once
STRATA_MCA_btl=carrier_pigeon broken "an unknown transport, of Strata's environment" -n 2 "$hostile" talk
says 'carrier_pigeon' $once
broken "transports that do not reach the peer" --mca pml_strata_btl self -n 2 "$hostile" talk
says 'no transport reaches rank|reaches no'

echo "-- plugins of another version"
good=$plugin
swap() { # makes an empty plugin folder
    plugin=$work/$1
    mkdir -p "$plugin"
}

swap text
echo "no library" >"$plugin/mca_pml_strata.so"
broken "a plugin that is no library" -n 2 "$hostile" talk

# Open MPI's own check: the version of the interface in the component. 5.0's is 2.1.0.
swap interface
cat >"$work/other.c" <<'END'
/* Begins like any component: magic is not looked at, the versions are. */
struct { int mca_major, mca_minor, mca_release; char project[16]; int project_version[3];
         char type[32]; int type_version[3]; char name[64]; int version[3]; void *functions[5]; char room[1024]; }
    mca_pml_strata_component = {2, 1, 0, "ompi", {5, 0, 0}, "pml", {2, 1, 0}, "strata", {0, 1, 0}, {0}, {0}};
END
if ${CC:-cc} -shared -fPIC -o "$plugin/mca_pml_strata.so" "$work/other.c" 2>"$work/out"; then
    broken "a plugin with the interface of 5.0" -n 2 "$hostile" talk
else
    fail "no plugin with another interface could be built"
fi

# Ours: the same interface under another minor version of Open MPI.
plugin=$good
cat >"$work/shim.c" <<'END'
#include <string.h>
int MPI_Get_library_version(char *version, int *length);
int MPI_Get_library_version(char *version, int *length)
{
    strcpy(version, "Open MPI v4.0.9, package: another");
    *length = (int)strlen(version);
    return 0;
}
END
if ${CC:-cc} -shared -fPIC -o "$work/shim.so" "$work/shim.c" 2>"$work/out"; then
    broken "a plugin built for another minor version" -x LD_PRELOAD="$work/shim.so" -n 2 "$hostile" talk
    says "built for Open MPI v${EMBED_VERSION-4.1}.*4\.0\.9" $once
    says 'cannot be used by rank [0-9]'
else
    fail "no shim could be built"
fi

# Strata's own components of another version: the plugin finds nothing that fits.
mkdir "$work/components"
for component in "$STRATA_BUILD"/plugins/.libs/strata_*.so; do
    name=$(basename "$component" .so)
    cat >"$work/component.c" <<END
#include "strata/sdk/component.h"
const struct st_component st_component_${name#strata_} = {
    .magic = ST_COMPONENT_MAGIC, .struct_size = sizeof(struct st_component), .abi_version = ST_ABI_VERSION + 1};
END
    ${CC:-cc} -I"$STRATA_SOURCE/include" -shared -fPIC -o "$work/components/$name.so" "$work/component.c" \
        2>"$work/out" || { fail "no component with another ABI could be built" && break; }
done
STRATA_MCA_mca_component_path=$work/components broken "Strata's components of another version" -n 2 "$hostile" talk
says 'another Strata' $once
says 'cannot be used by rank [0-9]'

echo "-- a peer without Strata"
cat >"$work/mixed" <<'END'
#!/bin/sh
# Rank $1 with the pml $2, the others with $3.
[ "${OMPI_COMM_WORLD_RANK-$PMIX_RANK}" != "$1" ] && pml=$3 || pml=$2
shift 3
OMPI_MCA_pml=$pml exec "$@"
END
chmod +x "$work/mixed"
full_form && mixtures=("0 strata ob1" "1 strata ob1" "2 ob1 strata") || mixtures=("1 strata ob1")
for ranks in "${mixtures[@]}"; do
    # shellcheck disable=SC2086 # words
    broken "rank ${ranks// /, others }" -n 3 "$work/mixed" $ranks "$hostile" talk
    says 'strata'
    if [ "$ranks" = "1 strata ob1" ]; then # Open MPI's own pml reports the others
        says 'cannot be used by rank 1 .*does not use Strata' 1
        says . 1
    fi
done

echo "-- and after all that it works"
program strata "$net" 3 hostile talk
finish
