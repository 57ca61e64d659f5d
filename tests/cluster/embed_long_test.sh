#!/bin/bash
# MPI programs over Strata in Open MPI, on two machines: ranks of one machine by shared memory, of two by TCP. Full form: NetPIPE and
# HPCC as well, where they are installed.
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/cluster/lib.sh"
built=${STRATA_EMBED_DIR:-$STRATA_BUILD/embed/openmpi/.libs}
[ -f "$built/mca_pml_strata.so" ] || skip "mca_pml_strata was not built (Debian: libopenmpi-dev)"
case ${SANITIZER_FLAGS-} in ?*) skip "a plugin with sanitizers does not load into a program without" ;; esac
say_form "$(form "requests, matching and collectives" "all MPI programs, NetPIPE, HPCC")"
two_links
# Only the plugin: Open MPI takes every file of the folder that begins with mca_ for one of its own.
mkdir "$work/plugin"
ln -s "$(realpath "$built")/mca_pml_strata.so" "$work/plugin"
embed() { # RANKS PROGRAM [ARGUMENT]...
    local ranks=$1
    shift
    cluster -np "$ranks" --mca mca_base_component_path "$work/plugin:SYSTEM_DEFAULT" --mca pml strata --mca osc pt2pt \
        --mca btl_base_warn_component_unused 0 --mca mpi_yield_when_idle 1 --mca pml_strata_btl_tcp_if_include 10.77.0.0/24 \
        -x STRATA_MCA_mca_base_report_transports=text "$@"
    check "$* with $ranks ranks ends well" test "$status" = 0
    check "$* with $ranks ranks went by TCP" grep -q 'by tcp' "$work/err"
}
# shellcheck disable=SC2046 # words
for program in requests matching collectives $(form "" "probe bsend comms intercomm datatypes truncate status onesided modes"); do
    embed 4 "$STRATA_BUILD/tests/embed/programs/$program"
done
if full_form; then
    embed 4 "$STRATA_BUILD/tests/embed/programs/threads" 20
    cd "$work" || exit
    if command -v NPopenmpi >/dev/null; then
        embed 2 NPopenmpi -u 1000000 -o "$work/np.out"
        check "NetPIPE has measured" test "$(wc -l <"$work/np.out")" -gt 20
    fi
    if command -v hpcc >/dev/null; then
        sed -e 's/^1000 .*Ns$/200          Ns/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt 2>"$work/err" || rm -f hpccinf.txt
        embed 4 hpcc
        check "HPCC has succeeded" grep -q '^Success=1' hpccoutf.txt
    fi
fi
finish
