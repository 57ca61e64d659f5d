#!/bin/bash
# Collectives of coll_arrival one of whose members is killed (tests/programs/coll_death.c) in each of their phases, by every scheme, in the
# first call of a communicator and later. The calls of all others end with the name of that member, and they go on without it.
set -u
export STRATA_MCA_coll_sm_ranks=0 STRATA_MCA_coll_arrival_form=pap_direct # coll_sm would do what fits it
export STRATA_MCA_coll_arrival_piece=8k # bcasts by leaders
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
program=$STRATA_BUILD/tests/programs/coll_death
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0 n_done=0 n_stops=0
say_form "phases and schemes over sm in the first call, a few over tcp and softhca; full: every one over each, also in a later call, and by rounds of progress"
# A sanitizer's library has to come before softhca's.
softhca=
if [ -z "${SANITIZER_FLAGS-}" ] && openib_on_softhca; then
    softhca=yes
else
    echo "left out: softhca (not in this build, or a sanitizer is)"
fi
# The sums of three counters of coll_arrival in the survivors, who alone report.
counted() {
    python3 - "$work/report" <<'PY'
import json, sys
rows = [row for line in open(sys.argv[1]) if line.startswith("{") for row in json.loads(line)["rows"]]
print(*(sum(row["sum"] for row in rows if row["name"] == "coll_arrival_" + name) for name in ("calls", "refused", "stops")))
PY
}
one() { # BTL SCHEME KIND[:ROOT] COUNT ROUND WHEN [SETTING=VALUE [NODES]]
    local out ended with=() calls=0 refused=0 stops=0
    case $1 in *openib) with=(--softhca) ;; esac
    [ -z "${7-}" ] || with+=(--mca "coll_arrival_${7%%=*}" "${7#*=}")
    [ -z "${8-}" ] || with+=(--mca mca_base_node "$8")
    # Rank 1 lives where its counter does not grow in the call. Some grow only where others came before it, or a block in parts: on a
    # busy machine another job is tried then.
    for _ in 1 2 3 4 5; do
        rm -f "$work/report"
        ended=0
        out=$(timeout -k 5 "$job_limit" strata-run ${with[@]+"${with[@]}"} --mca btl "$1,self" --mca coll_arrival_ranks 16 \
            --mca coll_arrival_scheme "$2" --keep-going --report-counters=json --report-file "$work/report" -n 4 "$program" "${@:3:4}" 2>&1) || ended=$?
        grep -q "^rank 1: the call ended before" <<<"$out" || break
        echo "$*: once more: $(grep -m 1 "^rank 1: the call ended before" <<<"$out")"
    done
    read -r calls refused stops < <(counted)
    if [ $ended != 137 ] || [ "$(grep -c 'rank 1 failed, goes on$' <<<"$out")" != 3 ] || ! ((calls > 0 && refused == 0)); then
        echo "FAILED: $*: status $ended, $calls calls of coll_arrival, $refused refused: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
    n_done=$((n_done + 1)) n_stops=$((n_stops + stops))
}
phases() { # BTL ROUND
    one "$1" copy 8 8 "$2" blocks_to_cells
    one "$1" copy 9 8 "$2" away
    one "$1" copy 9 20000 "$2" adverts
    one "$1" copy 8 20000 "$2" blocks_on_demand
    one "$1" copy 9 20000 "$2" away form=direct
    one "$1" zcopy 8 20000 "$2" adverts
    one "$1" zcopy 9 20000 "$2" away
    one "$1" zcopy 9 8 "$2" adverts form=direct
    one "$1" zcopy 8 20000 "$2" blocks_put
    one "$1" auto 8 20000 "$2" bystander
    one "$1" copy 9 20000 "$2" bystander
}
for round in $(form 0 '0 20'); do
    phases sm $round
    if full_form; then
        phases tcp $round
        [ -z "$softhca" ] || phases openib $round
    fi
done
# Allgather, allreduce (short, and in two calls), barrier; bcast: a member that receives, and the root.
others() { # BTL ROUND
    one "$1" copy 6 8 "$2" blocks_to_cells
    one "$1" copy 3 8 "$2" blocks_to_cells
    one "$1" zcopy 3 20000 "$2" adverts
    one "$1" copy 0 1 "$2" away
    one "$1" copy 1 8 "$2" away
    one "$1" copy 1:1 8 "$2" away
    one "$1" zcopy 1:1 20000 "$2" blocks_put
    full_form || return 0
    one "$1" zcopy 6 20000 "$2" blocks_put
    one "$1" copy 6 20000 "$2" away form=direct
    one "$1" copy 3 20000 "$2" blocks_on_demand
    one "$1" copy 3 20000 "$2" away
    one "$1" copy 0 1 "$2" blocks_to_cells
    one "$1" zcopy 1 20000 "$2" adverts
    one "$1" copy 1:1 20000 "$2" blocks_on_demand
    one "$1" auto 1:1 20000 "$2" bystander
    one "$1" copy 1:1 8 "$2" blocks_to_cells form=direct
}
others sm 20
one sm copy 1 8 20 credits
if full_form; then
    others sm 0
    others tcp 0
    others tcp 20
    if [ -n "$softhca" ]; then others openib 0 && others openib 20; fi
fi
one sm copy 8 8 20 blocks_from_cells
one sm copy 8 8 20 blocks_to_cells form=pap_bruck
! full_form || one sm zcopy 8 20000 20 adverts form=doubling
# Rank 1 as a member of a node of two, and as the leader of one: before it has posted, then, in the exchange of the leaders, and when it
# passes on the block of a bcast.
nodes() { # BTL ROUND
    local aware=form=pap_shm_direct
    one "$1" copy 8 8 "$2" away $aware 2
    one "$1" auto 9 8 "$2" shm_calls form=shm_direct 2
    one "$1" copy 8 8 "$2" node_blocks $aware 1,2
    one "$1" copy 3 8 "$2" node_blocks $aware 1,2
    one "$1" auto 1 8 "$2" blocks_relayed $aware 1,2
    one "$1" auto 1 20000 "$2" away form=shm_direct 1,2
    one "$1" zcopy 1 20000 "$2" pieces_relayed $aware 1,2
    full_form || return 0
    one "$1" copy 0 1 "$2" away $aware 2
    one "$1" copy 6 8 "$2" shm_calls form=shm_direct 2
    one "$1" copy 6 8 "$2" node_blocks $aware 1,2
    one "$1" copy 8 8 "$2" away $aware 1,2
    one "$1" zcopy 9 200 "$2" adverts $aware 1,2
    one "$1" auto 9 20000 "$2" shm_calls $aware 2
    one "$1" auto 1:1 8 "$2" away $aware 2
    one "$1" zcopy 1:1 20000 "$2" blocks_put $aware 2
    one "$1" zcopy 1 20000 "$2" blocks_relayed $aware 1,2
    one "$1" copy 1 20000 "$2" pieces_relayed form=shm_direct 1,2
    one "$1" zcopy 7 200 "$2" node_blocks form=shm_direct 1,2
}
nodes sm,tcp 20
[ -z "$softhca" ] || one sm,openib zcopy 8 200 0 node_blocks form=shm_direct 1,2
if full_form; then
    nodes sm,tcp 0
    [ -z "$softhca" ] || nodes sm,openib 0
    [ -z "$softhca" ] || nodes sm,openib 20
    for polls in 0 1 2 3 5 10 100 1000; do
        for split in 2 1,2; do
            one sm,tcp copy 8 200 2 $polls form=pap_shm_direct $split
            [ -z "$softhca" ] || one sm,openib zcopy 9 200 2 $polls form=shm_direct $split
        done
    done
fi
if full_form; then
    for polls in 0 1 2 3 5 10 100 1000; do
        for btl in sm tcp ${softhca:+openib}; do
            one $btl copy 8 20000 2 $polls
            one $btl zcopy 9 20000 2 $polls
        done
    done
else
    one tcp auto 8 20000 0 blocks_put
    one tcp zcopy 9 20000 20 adverts
    [ -z "$softhca" ] || one openib zcopy 8 20000 20 blocks_put
    [ -z "$softhca" ] || one openib zcopy 9 20000 0 away
    [ -z "$softhca" ] || one openib auto 9 20000 20 bystander
fi
echo "$n_done jobs, $n_stops adverts answered by a stop"
[ "$n_stops" -gt 0 ] || { echo "FAILED: no advert was answered by a stop" && status=1; }
exit $status
