/* What the PML holds and how it would send. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include "ob1_inl.h"

static void add(st_mem_line_fn line, void *arg, const char *category, size_t bytes)
{
    strata_mem_line_t l = {"pml_ob1", category, bytes, 0};

    if (bytes)
        line(arg, &l);
}

void ob1_mem_report(struct st_pml *head, st_mem_line_fn line, void *arg)
{
    struct ob1 *pml = (struct ob1 *)head;
    size_t peers =
        st_rank_table_bytes(&pml->peers) + pml->n_peers * sizeof(struct ob1_peer) + st_slab_bytes(&pml->cpeers);
    size_t other = sizeof(*pml) + ob1_poll_bytes(pml) + pml->ids.n * sizeof(struct ob1_id_slot);

    for (uint32_t i = 0; pml->comms && i <= pml->comms_mask; i++) {
        for (struct ob1_comm *c = pml->comms[i]; c; c = c->next) {
            peers += st_rank_table_bytes(&c->peers);
            other += ob1_match_bytes(&c->match);
        }
    }
    add(line, arg, "peers", peers);
    add(line, arg, "requests",
        st_slab_bytes(&pml->requests) + st_slab_bytes(&pml->tasks) + st_slab_bytes(&pml->pieces) +
            st_slab_bytes(&pml->controls) + pml->link_bytes);
    add(line, arg, "unexpected", st_slab_bytes(&pml->messages) + st_slab_bytes(&pml->streams) + pml->unexpected_bytes);
    add(line, arg, "other", other);
}

char *ob1_describe(struct st_pml *head, int rank)
{
    struct ob1 *pml = (struct ob1 *)head;
    struct ob1_peer *peer;
    enum ob1_protocol longest;
    const struct st_btl *btl;
    char *text;

    if (rank < 0 || rank >= pml->size || ob1_peer_find(pml, rank, &peer) != STRATA_OK ||
        ob1_peer_connect(pml, peer) != STRATA_OK)
        return NULL;
    btl = peer->bml->paths[0].ep->btl;
    struct ob1_choice c = {.matched = true,
                           .contiguous = true,
                           .peer_exposed = true,
                           .wanted = (enum ob1_rndv)pml->config.rndv,
                           .caps = peer->bml->paths[0].ep->caps & ~peer->lost_caps,
                           .length = 1u << 30,
                           .rdma_min = pml->config.rdma_min ? pml->config.rdma_min : btl->rdma_min,
                           .split_min = pml->config.split_min};
    longest = ob1_choose(&c);
    if (asprintf(&text,
                 "{\"pml\":\"ob1\",\"eager_limit\":%u,\"stream_limit\":%u,\"rdma_min\":%zu,\"split_min\":%zu,"
                 "\"stripe_min\":%zu,\"paths\":%u,\"long_messages\":\"%s\"}",
                 peer->eager_limit, peer->stream_limit, (size_t)c.rdma_min, pml->config.split_min,
                 pml->config.stripe_min, peer->bml->n_paths, ob1_protocol_name(longest)) < 0)
        return NULL;
    return text;
}

static void count(st_counter_fn fn, void *arg, const char *name, const char *unit, int gauge, uint64_t value)
{
    strata_counter_t c = {"pml", "ob1", name, unit, gauge, value};

    fn(arg, &c);
}

/* Nothing is counted on the hot paths for this: the sequence numbers of all members are the number of messages. */
void ob1_count(struct st_pml *head, st_counter_fn fn, void *arg)
{
    struct ob1 *pml = (struct ob1 *)head;
    uint64_t sent = pml->n_sent, received = pml->n_received, unexpected = pml->n_early, posted = 0;

    for (uint32_t i = 0; pml->comms && i <= pml->comms_mask; i++) {
        for (struct ob1_comm *c = pml->comms[i]; c; c = c->next) {
            unexpected += c->match.n_unexpected;
            posted += c->match.n_posted;
            for (int64_t r = 0; (r = st_rank_table_next(&c->peers, (uint32_t)r)) >= 0; r++) {
                const struct ob1_cpeer *p = st_rank_table_get(&c->peers, (uint32_t)r);
                sent += p->send_seq;
                received += p->recv_seq;
            }
        }
    }
    count(fn, arg, "messages_sent", "messages", 0, sent);
    count(fn, arg, "messages_received", "messages", 0, received);
    count(fn, arg, "unexpected", "messages", 1, unexpected);
    count(fn, arg, "posted", "receives", 1, posted);
    count(fn, arg, "unexpected_bytes", "bytes", 1, pml->unexpected_bytes);
    for (int p = 0; p < OB1_P_COUNT; p++)
        count(fn, arg, ob1_protocol_name((enum ob1_protocol)p), "messages begun that way", 0, pml->by_protocol[p]);
    count(fn, arg, "paths_failed", "paths", 0, pml->n_paths_failed);
}

void ob1_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted)
{
    const struct ob1_comm *c = (const struct ob1_comm *)comm;

    if (unexpected)
        *unexpected = c->match.n_unexpected;
    if (posted)
        *posted = c->match.n_posted;
}
