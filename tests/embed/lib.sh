# shellcheck shell=bash
# Shared by the tests of the embedding. Sourced. Sets $work (a folder that goes away) and $plugin; leaves with status 77
# and the reason when there is nothing to test.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
skip() { echo "skipped: $*"; exit 77; }

# EMBED_PREFIX (with.sh): another Open MPI than Debian's.
prefix=${EMBED_PREFIX-}
mpirun=${prefix:+$prefix/bin/}${prefix:+mpirun}
[ -n "$mpirun" ] || mpirun=mpirun.openmpi
if [ -z "$prefix" ]; then command -v mpirun.openmpi >/dev/null || skip "mpirun.openmpi is not installed (Debian: openmpi-bin)"; fi
built=${STRATA_EMBED_DIR:-$STRATA_BUILD/embed/openmpi/.libs}
[ -f "$built/mca_pml_strata.so" ] || skip "mca_pml_strata was not built (Debian: libopenmpi-dev)"
# shellcheck disable=SC2154 # by `make check`
case ${SANITIZER_FLAGS-} in ?*) skip "a plugin with sanitizers does not load into a program without" ;; esac

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# The same of PRRTE, the mpirun of 5.0.
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:OVERSUBSCRIBE
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0
# PMIx's store in shared memory makes the fault below more frequent.
export PMIX_MCA_gds=hash
export OMPI_MCA_orte_tmpdir_base
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-embed.XXXXXX")
trap 'rm -rf "$work"' EXIT
OMPI_MCA_orte_tmpdir_base=$work/session
plugin=$work/plugin
programs=${EMBED_PROGRAMS:-$STRATA_BUILD/tests/embed/programs}
mkdir "$plugin" "$OMPI_MCA_orte_tmpdir_base"
# Only the plugin: Open MPI takes every file of the folder that begins with mca_ for one of its own.
ln -s "$(realpath "$built")/mca_pml_strata.so" "$plugin"
if [ -f "$built/mca_coll_strata.so" ]; then ln -s "$(realpath "$built")/mca_coll_strata.so" "$plugin"; fi
strata_mpirun=$(command -v strata-mpirun || echo "$STRATA_SOURCE/tools/strata-mpirun")

# mpirun with one or the other pml, and a limit of time: with strata|ob1 SECONDS ARGS...
with() {
    local pml=$1 limit=$2
    shift 2
    if [ -n "$prefix" ] && [ ! -x "$mpirun" ]; then # an Open MPI without PRRTE
        with_strata_run "$@"
    elif [ "$pml" = strata ]; then
        MPIRUN=$mpirun STRATA_EMBED_DIR=$plugin timeout -k 5 "$limit" bash "$strata_mpirun" "$@" </dev/null
    else
        EMBED_REFERENCE=1 timeout -k 5 "$limit" "$mpirun" --mca pml "$pml" "$@" </dev/null
    fi
}

# Options by which one-sided communication goes over the pml: 4.1 has a component for it, 5.0 knows its own transports only.
# shellcheck disable=SC2034 # of the tests
case ${EMBED_VERSION-4.1} in 4.1) one_sided=(--mca osc pt2pt) ;; *) one_sided=() ;; esac
# The same by strata-run: mpirun's options as variables of the environment.
with_strata_run() { # uses $pml and $limit
    local job=(strata-run) variables variable
    IFS=';' read -ra variables <<<"${OMPI_MCA_mca_base_env_list-}"
    for variable in "${variables[@]}"; do job+=(-x "$variable"); done
    while [ "${1#-}" != "$1" ]; do
        case $1 in
        --mca) job+=(-x "OMPI_MCA_$2=$3") && shift 3 ;;
        *) job+=("$1" "$2") && shift 2 ;;
        esac
    done
    if [ "$pml" = strata ]; then job+=(--mpi); else job+=(-x "OMPI_MCA_pml=$pml" -x EMBED_REFERENCE=1); fi
    STRATA_EMBED_DIR=$plugin timeout -k 5 "$limit" "${job[@]}" "$@" </dev/null
}

n_checks=0 n_failed=0 n_repeated=0
fail() {
    n_failed=$((n_failed + 1))
    echo "FAIL: $*"
    if [ -s "$work/out" ]; then grep -v '^$' "$work/out" | head -n 30 | sed 's/^/    | /'; fi
}

# Processes of the program $1 that were started from here: they have our folder in their environment.
ours() {
    local pid
    for pid in $(pgrep -f "^[^ ]*$1( |\$)"); do
        { tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | grep -qx "OMPI_MCA_orte_tmpdir_base=$OMPI_MCA_orte_tmpdir_base" &&
            echo "$pid"
    done
}

# A fault of the launcher, not of ours: mpirun of Open MPI 4.1.4 with PMIx 4.2.2 leaves a process that MPI_Comm_spawn starts
# hanging in MPI_Init, before it has loaded any pml; now and then, and more often on a busy machine. A run that ends so is
# repeated, at most three times, and counted in the last line.
repeats=3
# Whether a process of the program $1 has no pml.
has_no_pml() {
    local pid
    case $pml,${EMBED_VERSION-4.1} in ob1,5.*) return 1 ;; esac # 5.0 has its own pmls in libmpi
    for pid in $(ours "$1"); do
        if [ -r "/proc/$pid/maps" ] && ! grep -q mca_pml_ "/proc/$pid/maps" 2>/dev/null; then return 0; fi
    done
    return 1
}

# Sleeps for a second, less if JOB ends; fails when it has ended. Most runs end before anything has to be looked for.
sleeps_beside() { # JOB
    sleep 1 >/dev/null 2>&1 &
    wait -n "$1" $!
    kill -0 "$1" 2>/dev/null
}

# One run into $work/out, its status in $status; "hangs" when a process was as above for a minute without a break, where a
# start takes a second.
attempt() { # PML SECONDS NAME ARGS-OF-MPIRUN...
    local pml=$1 limit=$2 name=$3 job since=$SECONDS
    shift 3
    with "$pml" "$limit" "$@" >"$work/out" 2>&1 &
    job=$!
    while sleeps_beside "$job"; do
        has_no_pml "$programs/$name" || since=$SECONDS
        if [ $((SECONDS - since)) -ge 60 ]; then
            kill "$job"
            wait "$job"
            # The subshell does not hand the signal on: mpirun and the process that hangs would go on.
            # shellcheck disable=SC2046 # a word for each
            kill -KILL $(ours "$programs/$name") $(ours mpirun.openmpi) $(ours orterun) $(ours prterun) 2>/dev/null
            status=hangs
            return
        fi
    done
    wait "$job"
    status=$?
}

# A program of ours under a pml: program strata|ob1 SECONDS RANKS [--mca NAME VALUE]... NAME ARGS...
# SECONDS less than job_limit mean job_limit: nothing is judged by time.
program() {
    local pml=$1 limit=$(($2 < job_limit ? job_limit : $2)) n=$3 status options=() tries=0 begin=$SECONDS
    shift 3
    while [ "${1#--}" != "$1" ]; do
        options+=("$1" "$2" "$3")
        shift 3
    done
    if [ "$1" = spawn ] && [ -n "$prefix" ] && [ ! -x "$mpirun" ]; then
        echo "not run: spawn under $pml: strata-run starts no further jobs"
        return
    fi
    case $1,${EMBED_VERSION-4.1} in
    spawn,5.*)
        if [ -n "${OMPI_MCA_mca_base_env_list-}" ]; then
            echo "not run: spawn under $pml: mca_base_env_list, which names softhca, does not reach spawned jobs under the mpirun of 5.0"
            return
        fi
        # The han of 5.0.9 waits for ever in a communicator merged with a spawned job, over ob1 as well.
        options+=(--mca coll ^han) ;;
    esac
    attempt "$pml" "$limit" "$1" "${options[@]}" -n "$n" "$programs/$1" "${@:2}"
    while [ "$status" = hangs ] && [ "$tries" -lt "$repeats" ]; do
        tries=$((tries + 1)) n_repeated=$((n_repeated + 1))
        echo "repeated: $1 with $n ranks under $pml, after Open MPI's hang in MPI_Init"
        attempt "$pml" "$limit" "$1" "${options[@]}" -n "$n" "$programs/$1" "${@:2}"
    done
    n_checks=$((n_checks + 1))
    if [ "$status" = 0 ] && grep -q ' 0 failed$' "$work/out"; then
        echo "ok: $* under $pml: $(grep ' 0 failed$' "$work/out"), $((SECONDS - begin)) s"
        grep '^left out: ' "$work/out"
    elif [ "$status" = 77 ]; then
        echo "not run: $* under $pml: $(grep skipped "$work/out")"
    else
        fail "$* with $n ranks under $pml: exit status $status"
    fi
}

finish() {
    local repeated=
    [ "$n_repeated" = 0 ] || repeated=", $n_repeated repeated after Open MPI's hang in MPI_Init"
    echo "$n_checks runs, $n_failed failed$repeated"
    [ "$n_failed" = 0 ]
    exit
}
