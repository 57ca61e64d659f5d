#!/bin/bash
# libfabric's verbs provider, by its fi_pingpong, unmodified: connections, its reliable datagrams over them (ofi_rxm, which Open
# MPI's mtl ofi takes), and datagrams. It moves identifiers of librdmacm to other channels before it connects them. The short form has
# datagrams over connections on one kind of link.
# starts first
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v fi_pingpong >/dev/null || skip "no fi_pingpong (libfabric-bin)"

# One end at least prints the line of the last size, of which it has checked the data; their exits are not judged. When the peer has
# disconnected, libfabric 1.17 destroys the queue pair (prov/verbs, vrb_ep_close) before it polls the completion of the last receive, and
# the driver removes completions of a queue pair that is destroyed (softhca like mlx5). The end that lost it polls for ever.
last_line() { grep -q '^1m  *20  *=20' "$work/server" "$work/client"; }
printed_or_ended() { last_line || ! kill -0 "${pids[0]}" || ! kill -0 "${pids[1]}"; }
reliable_datagrams() {
    next_port
    soft_behind 30 stdbuf -oL fi_pingpong -p "verbs;ofi_rxm" -e rdm -I 20 -c -B "$port" >"$work/server" 2>&1
    pids=($!)
    listens_or_ended() { listens "$port" || ! kill -0 "${pids[0]}"; }
    wait_until listens_or_ended
    soft_behind 30 stdbuf -oL fi_pingpong -p "verbs;ofi_rxm" -e rdm -I 20 -c -P "$port" 127.0.0.1 >"$work/client" 2>&1
    pids+=($!)
    wait_until printed_or_ended
    kill "${pids[@]}" 2>/dev/null
    wait "${pids[@]}" 2>/dev/null
    pids=()
    n_checks=$((n_checks + 1))
    last_line || fail "ofi_rxm over $SOFTHCA_LINK: no last line" "$work/server" "$work/client"
}
for link in ib roce; do
    export SOFTHCA_LINK=$link
    for kind in msg dgram; do
        talk 127.0.0.1 fi_pingpong -p verbs -e $kind -I 20 -c -B @ -- fi_pingpong -p verbs -e $kind -I 20 -c -P @ HOST
    done
    if [ $link = ib ] || full_form; then reliable_datagrams; fi
done
finish
