#!/bin/bash
# A few MPI programs over the plugin, briefly; the rest is in the long tests of this folder.
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
program strata 60 2 truncate
program strata 60 2 status
# An empty setting takes back what Strata's own say.
STRATA_MCA_btl=self OMPI_MCA_pml_strata_btl='' program strata 60 2 status
program strata 60 3 datatypes
program strata 60 2 threads 30
program strata 60 2 --mca pml_strata_btl_sm_eager_limit 5k tool again
program strata 60 2 tool
# strata-mpirun's answers, and its word about a program of MPICH: here a script that has the name of MPICH's library in it.
if command -v "$mpirun" >/dev/null; then
    export MPIRUN=$mpirun
    printf '#!/bin/sh\n# libmpich.so\n' >"$work/of_mpich" && chmod +x "$work/of_mpich"
    for name in "$work/of_mpich" true; do
        STRATA_EMBED_DIR=$plugin timeout -k 5 60 bash "$strata_mpirun" -n 1 "$name" </dev/null >"$work/said" 2>&1 || fail "$name under strata-mpirun ends with $?"
        grep -q "of_mpich uses MPICH (libmpich.so)" "$work/said" && warned=yes || warned=no
        [ "$warned" = "$([ "$name" = true ] && echo no || echo yes)" ] || fail "$name: a warning about MPICH: $warned"
    done
    # A file that is no program is the program's data, whatever is in it.
    echo libmpich.so >"$work/data"
    STRATA_EMBED_DIR=$plugin timeout -k 5 60 sh "$strata_mpirun" -n 1 true "$work/data" </dev/null >"$work/said" 2>&1 || fail "true with a file ends with $?"
    ! grep "uses MPICH" "$work/said" || fail "a file of data is looked into for MPICH"
    for what in "--params:pml_strata_btl_sm_eager_limit" "--version:^strata-mpirun (Strata) [0-9]" "--version:mpirun.* (Open"; do
        STRATA_EMBED_DIR=$plugin timeout -k 5 60 bash "$strata_mpirun" "${what%%:*}" </dev/null >"$work/said" 2>&1 || fail "${what%%:*} ends with $?"
        grep -q -e "${what#*:}" "$work/said" || fail "strata-mpirun ${what%%:*}: $(head -c 500 "$work/said")"
    done
fi
# Under 5.0 alone strata-mpirun sets two more paths, unless the user has: mpirun would hand the plugin's folder on to PMIx, which finds
# none of its own plugins there. A stand-in for mpirun prints its environment.
for version in 4.1.4 5.0.9; do
    printf '#!/bin/sh\n[ "$1" != --version ] || { echo "mpirun (Open MPI) %s" && exit; }\nenv\n' "$version" >"$work/mpirun" && chmod +x "$work/mpirun"
    env -u PMIX_MCA_mca_base_component_path PRTE_MCA_mca_base_component_path=mine MPIRUN="$work/mpirun" STRATA_EMBED_DIR="$plugin" \
        sh "$strata_mpirun" -n 1 true >"$work/said" || fail "a stand-in for mpirun ends with $?"
    grep -q "^OMPI_MCA_mca_base_component_path=$plugin:" "$work/said" || fail "$version: the path of plugins is not set"
    grep -qx PRTE_MCA_mca_base_component_path=mine "$work/said" || fail "$version: the user's path of PRRTE is not kept"
    empty=$(grep -cx PMIX_MCA_mca_base_component_path= "$work/said")
    [ "$version $empty" = "4.1.4 0" ] || [ "$version $empty" = "5.0.9 1" ] || fail "$version: the path of PMIx is set $empty times"
done
# Names of counters in strata-info are names of performance variables. One cache and one pool is in use, whose counters go by
# the framework's name; counters of one component alone are no performance variables.
n_names=0
strata-info --counters --json >"$work/counters" || fail "strata-info --counters ended with $?"
for name in $(sed -n 's/^ *"name": "\(.*\)".*/\1/p' "$work/counters" | sed 's/^\(rcache\|mpool\)_[a-z]*_/\1_/' | sort -u); do
    [[ $name =~ ^(rcache|mpool)_ || $name =~ ^btl_[a-z0-9]+_(messages_sent|bytes_sent|bytes_got|registered_bytes)$ ]] || continue
    n_names=$((n_names + 1))
    grep -q "^pml_strata_$name: " "$work/out" || fail "there is no performance variable pml_strata_$name"
done
[ "$n_names" -gt 20 ] || fail "strata-info lists $n_names counters only"
program strata 60 2 spawn 1
finish
