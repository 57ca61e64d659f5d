/* A module's eager RDMA: made, given back, reported. */
#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/process_memory.h>
#include "eager_rdma/kept.h"
#include "module.h"

#define NAP_NS  50000u        /* longest sleep of a receiver with rings, before what the system adds */
#define IDLE_NS (20 * NAP_NS) /* of sleeps in a row in which nothing comes by a ring, until all are revoked */

int ib_eager_favour(struct ib_module *m, char *why, size_t why_size)
{
    const char *mistake = "";
    int rc = st_peer_ranges_parse(m->dev.par->eager_rdma_hot, &m->eager.favoured, &mistake);

    if (rc == STRATA_ERR_PARAM)
        snprintf(why, why_size, "btl_openib_eager_rdma_hot: expected ranks such as 0,4-7 at \"%.40s\"", mistake);
    else if (rc != STRATA_OK)
        snprintf(why, why_size, "btl_openib_eager_rdma_hot: %s", strata_strerror(rc));
    return rc;
}

int ib_eager_open(struct ib_module *m)
{
    const struct ib_params *par = m->dev.par;
    struct ib_eager *e = &m->eager;
    int rc;

    e->none = (struct ib_ring_in){.flag = (const char *)(&e->nothing + 1) - 1, .expect = ib_lap_flag(0)};
    e->first = &e->none;
    if (par->eager_rdma == IB_EAGER_OFF || par->eager_rdma_peers == 0)
        return STRATA_OK;
    e->ring_size = (uint32_t)(par->eager_rdma_slot + IB_LINE - 1) / IB_LINE * IB_LINE;
    e->ring_slots = (uint32_t)par->eager_rdma_slots;
    e->ring_span = (uint32_t)par->eager_rdma_span;
    if (e->ring_span > IB_SLOT_MOST / e->ring_size)
        e->ring_span = IB_SLOT_MOST / e->ring_size;
    e->rings = aligned_alloc(IB_LINE, (size_t)par->eager_rdma_peers * sizeof *e->rings);
    e->polled = calloc((size_t)par->eager_rdma_peers, sizeof(struct ib_ring_in *));
    if (!e->rings || !e->polled)
        return STRATA_ERR_NOMEM;
    for (uint32_t i = 0; i < (uint32_t)par->eager_rdma_peers; i++)
        e->rings[i] = (struct ib_ring_in){
            .place = i, .first = ib_ring_first(i, e->ring_slots), .kept = {&e->rings[i].kept, &e->rings[i].kept}};
    e->untried = par->eager_rdma == IB_EAGER_AUTO;
    rc = ib_grants_open(m);
    e->on = rc == STRATA_OK;
    if (e->on)
        st_polling_set_favour(e->hot.set, &e->favoured);
    return rc;
}

void ib_eager_close(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;

    for (uint32_t i = 0; e->rings && i < e->hot.n_places; i++)
        ib_ring_memory_put(m, &e->rings[i].memory);
    st_hot_destroy(&e->hot);
    st_peer_ranges_free(&e->favoured);
    free(e->rings);
    free(e->polled);
    e->rings = NULL;
    e->polled = NULL;
    e->first = &e->none;
    e->n_polled = e->n_lively = 0;
    e->on = false;
}

static void eager_reset_out(struct ib_module *m, struct ib_ring_out *out)
{
    struct ib_ring_out **at = &m->eager.outs;

    while (*at != out)
        at = &(*at)->next;
    *at = out->next;
    ib_eager_unsay(m, NULL, out);
    ib_ring_memory_put(m, &out->staging);
    free(out);
}

/* The ring's memory goes with its key: nothing late can be written to what another peer gets. */
static void eager_reset_in(struct ib_module *m, struct ib_ring_in *r)
{
    ib_eager_unsay(m, r, NULL);
    ib_kept_end(m, r);
    r->peer->q[IB_HIGH].ring = NULL;
    r->peer = NULL;
    r->plan = r->taken = 0;
    ib_ring_memory_put(m, &r->memory);
    st_hot_left(&m->eager.hot, r->place);
}

void ib_eager_reset(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    p->slots = 0;
    p->owed_slots = 0;
    p->ringless = false;
    ib_eager_unrefuse(m, p);
    if (p->ring_out)
        eager_reset_out(m, p->ring_out);
    p->ring_out = NULL;
    for (uint32_t i = 0; i < m->eager.hot.n_places; i++)
        if (m->eager.rings[i].peer == p)
            eager_reset_in(m, &m->eager.rings[i]);
}

/* Sleeps are counted by their length, since messages beside the rings may end them early; and what the program does
 * between two of them is not counted. */
static void eager_idle(struct ib_eager *e, uint64_t now)
{
    uint64_t slept = now - e->armed_ns;

    e->armed_ns = now;
    e->idle_ns += slept < NAP_NS ? slept : NAP_NS;
    if (e->idle_ns < IDLE_NS)
        return;
    e->idle_ns = 0;
    st_hot_revoke_all(&e->hot);
}

bool ib_eager_arm(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;

    if (e->unsaid)
        ib_eager_say(m);
    if (e->n_polled == 0)
        return e->unsaid != 0;
    ib_eager_report(m);
    eager_idle(e, st_now_ns());
    return true;
}

/* All writes to the ring have ended. */
static bool eager_is_over(const struct ib_ring_out *out)
{
    return out->left && !out->unsaid && (int32_t)(out->peer->q[IB_HIGH].done - out->farewell) >= 0;
}

void ib_eager_refresh(struct ib_module *m)
{
    for (struct ib_ring_out *out = m->eager.outs; out; out = out->next) {
        if ((int32_t)(out->plain - out->peer->q[IB_HIGH].posted) < 0)
            out->plain = out->peer->q[IB_HIGH].posted;
        if (out->staging.mr && eager_is_over(out))
            ib_ring_memory_put(m, &out->staging);
    }
}

static void eager_add(struct ib_eager_memory *sum, const struct ib_ring_memory *memory)
{
    if (!memory->mr)
        return;
    if (memory->piece.fd >= 0)
        sum->shared += memory->piece.length;
    else
        sum->own += st_resident_bytes(memory->piece.memory, memory->piece.length);
}

struct ib_eager_memory ib_eager_memory(const struct ib_module *m)
{
    const struct ib_eager *e = &m->eager;
    struct ib_eager_memory sum = {.tables = e->hot.n_places * (sizeof *e->rings + sizeof(struct ib_ring_in *)) +
                                            st_hot_bytes(&e->hot)};

    for (uint32_t i = 0; i < e->hot.n_places; i++)
        eager_add(&sum, &e->rings[i].memory);
    for (const struct ib_ring_out *out = e->outs; out; out = out->next) {
        sum.tables += sizeof *out;
        eager_add(&sum, &out->staging);
    }
    return sum;
}
