# shellcheck shell=bash
# Sourced by the tests of user memory and its registrations over btl_openib on softhca.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
[ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 ||
    { echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"; exit 77; }
case ${SANITIZER_FLAGS-} in ?*) echo "SKIP: a library with sanitizers does not load into a program without"; exit 77 ;; esac
export SOFTHCA_FABRIC=registered-$$

try() { # WANTED-STATUS CACHE [VARIABLE=VALUE...] MODE [ARGUMENT...]: rdma_min is what it is where registrations are kept
    local want=$1 cache=$2 settings=()
    shift 2
    while [[ $1 == *=* ]]; do settings+=("$1") && shift; done
    run "$want" timeout -k 2 "$job_limit" env "${settings[@]}" strata-run --softhca -n 2 --mca btl openib,self --mca rcache "$cache" \
        --mca btl_openib_rdma_min 32k "$STRATA_BUILD/tests/programs/registered" "$@"
}
both() { # REGEX: both ranks say it
    [ "$(grep -cE "^rank [01]: $1" "$work/out")" = 2 ] || complain "not both ranks say '$1': $(cat "$work/out")"
}
# No source of memory events, whatever this build has.
blind=^$(cd "$STRATA_BUILD/components" && for d in memory_*/; do [ ! -e "$d/lib${d%/}.la" ] || printf '%s,' "${d#memory_}"; done | tr -d /)
blind=${blind%,}
# At random: ends after so many steps, or so many seconds. SEED=N chooses them.
steps() { # WANTED-STATUS STEPS SECONDS [VARIABLE=VALUE...]
    run "$1" timeout -k 2 "$job_limit" env "${@:4}" strata-run --softhca -n 2 --mca btl openib,self --mca btl_openib_rdma_min 16k \
        "$STRATA_BUILD/tests/programs/memory_steps" "$2" "$3" 4 "${SEED:-1}"
}
