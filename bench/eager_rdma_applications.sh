#!/usr/bin/env bash
# Applications over btl_openib on softhca under Open MPI: hpcc and LAMMPS, where they are installed. Prints "hit_rate APPLICATION PERCENT" (messages
# that went by rings), "sources APPLICATION MEAN" (peers that a rank got messages from) and "time APPLICATION SECONDS".
# eager_rdma_applications.sh off|auto|flag|seal|imm [quick]
# shellcheck disable=SC2154 # what lib.sh sets
set -u
way=$1 quick=${2-}
# shellcheck disable=SC1091
. "$STRATA_SOURCE/tests/embed/openib_lib.sh"
export OMPI_MCA_pml_strata_mca_base_report_transports=json OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
if [ "$way" = off ] || [ "$way" = auto ]; then
    export OMPI_MCA_pml_strata_btl_openib_eager_rdma=$way
else
    export OMPI_MCA_pml_strata_btl_openib_eager_rdma=on OMPI_MCA_pml_strata_btl_openib_eager_rdma_detect="$way"
fi
application() { # NAME RANKS COMMAND...: in the present folder
    local name=$1 begin
    begin=$(date +%s%N)
    with strata 500 -n "$2" --output-filename "$work/$name-ranks" "${@:3}" >"$work/out" 2>&1 || { tail -n 5 "$work/out" >&2 && return 1; }
    echo "time $name $((($(date +%s%N) - begin) / 1000000))" | awk '{ print $1, $2, $3 / 1000 }'
    python3 - "$name" "$work/$name-ranks" <<'END'
import glob, json, sys
name, folder = sys.argv[1:]
ranks, sent, rings, sources = 0, 0, 0, 0
for path in glob.glob(folder + "/**/stderr", recursive=True):  # together the long lines of ranks would be mixed
    text = open(path, encoding="utf-8", errors="replace").read()
    at = text.find('{"rank"')  # behind the name of the host
    if at < 0:
        continue
    of, _ = json.JSONDecoder().raw_decode(text[at:])
    ranks += 1
    sources += sum(p["messages_received"] > 0 and p["rank"] != of["rank"] for p in of["peers"])
    for t in of["transports"]:
        if t["transport"] == "openib":
            sent += t["messages_sent"]
            rings += t["eager_rdma"]
if not ranks:
    sys.exit("no rank has reported its transports")
print("hit_rate", name, round(100 * rings / max(sent, 1), 1))
print("sources", name, round(sources / ranks, 1))
END
}
if command -v hpcc >/dev/null; then
    mkdir "$work/hpcc" && cd "$work/hpcc" || exit 1
    side=${quick:+200}
    zcat -f /usr/share/doc/hpcc/examples/_hpccinf.txt |
        sed "s/^[0-9 ]* Ns\$/${side:-800} Ns/; s/^[0-9 ]* NBs\$/64 NBs/; s/^[0-9 ]* Ps\$/2 Ps/; s/^[0-9 ]* Qs\$/2 Qs/" >hpccinf.txt
    application hpcc 4 hpcc || exit 1
fi
if command -v lmp >/dev/null; then
    mkdir "$work/lammps" && cd "$work/lammps" || exit 1
    # Lennard-Jones, the liquid of LAMMPS' own benchmark.
    cat >in.lj <<END
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
run ${quick:+1}00
END
    application lammps 8 lmp -in in.lj || exit 1
fi
