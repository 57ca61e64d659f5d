/* Rings change hands: the receiver grants and revokes, which sdk/hot_peers.h decides; the sender takes and leaves. What
 * is said travels as control messages, in order with all others. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "eager_rdma/kept.h"
#include "eager_rdma/ring_aim.h"
#include "module.h"

/* ---- saying it ---- */

/* A connection that is closing says nothing of its rings any more. */
static bool grant_send(struct ib_module *m, struct ib_peer *p, enum ib_control kind, const struct ib_ring_grant *body,
                       bool *unsaid)
{
    if (ib_send_control_with(p, kind, body, sizeof *body) == STRATA_ERR_AGAIN) {
        ib_attend(&m->poll);
        return false;
    }
    *unsaid = false;
    m->eager.unsaid--;
    return true;
}

static void grant_say(struct ib_module *m, struct ib_ring_in *r)
{
    struct ib_ring_grant g = {.word = r->word};

    if (!r->revoked)
        g = (struct ib_ring_grant){.address = (uintptr_t)r->memory.piece.memory,
                                   .rkey = r->memory.mr->rkey,
                                   .word = r->word,
                                   .size = (uint16_t)r->size,
                                   .span = (uint16_t)m->eager.ring_span,
                                   .slots = (uint8_t)r->order.n,
                                   .first = r->first,
                                   .detect = r->detect};
    (void)grant_send(m, r->peer, IB_CONTROL_RING, &g, &r->unsaid);
}

static void grant_say_farewell(struct ib_module *m, struct ib_ring_out *out)
{
    const struct ib_ring_grant g = {.word = out->word};

    if (!grant_send(m, out->peer, IB_CONTROL_FAREWELL, &g, &out->unsaid))
        return;
    out->word = 0;
    out->farewell = out->peer->q[IB_HIGH].posted;
}

static void grant_say_refused(struct ib_module *m, struct ib_peer *p)
{
    const struct ib_ring_grant g = {.word = p->ring_refused, .refused = 1};
    bool unsaid = true;

    if (!grant_send(m, p, IB_CONTROL_FAREWELL, &g, &unsaid))
        return;
    p->ring_refused = 0;
    m->eager.refused--;
}

void ib_eager_say(struct ib_module *m)
{
    for (struct ib_peer *p = m->eager.refused ? m->peers.all : NULL; p; p = p->next)
        if (p->ring_refused)
            grant_say_refused(m, p);
    for (uint32_t i = 0; i < m->eager.hot.n_places; i++)
        if (m->eager.rings[i].unsaid)
            grant_say(m, &m->eager.rings[i]);
    for (struct ib_ring_out *out = m->eager.outs; out; out = out->next)
        if (out->unsaid)
            grant_say_farewell(m, out);
}

void ib_eager_unsay(struct ib_module *m, struct ib_ring_in *r, struct ib_ring_out *out)
{
    bool *unsaid = r ? &r->unsaid : &out->unsaid;

    m->eager.unsaid -= *unsaid;
    *unsaid = false;
}

void ib_eager_unrefuse(struct ib_module *m, struct ib_peer *p)
{
    m->eager.unsaid -= p->ring_refused != 0;
    m->eager.refused -= p->ring_refused != 0;
    p->ring_refused = 0;
}

/* ---- the receiver ---- */

/* No byte of the ring looks like the last one of a line that has arrived. */
static void grant_clear(struct ib_ring_in *r, size_t bytes)
{
    char *memory = r->memory.piece.memory;

    for (size_t at = IB_LINE - 1; at < bytes; at += IB_LINE)
        memory[at] = 0;
}

/* Name of a detection, for the log. */
static const char *grant_detection(uint8_t detect)
{
    static const char *const name[IB_DETECTS] = {"flag", "seal", "imm"};

    return name[detect];
}

static int grant_ready(void *arg, uint32_t place, uint32_t rank)
{
    struct ib_module *m = arg;
    struct ib_eager *e = &m->eager;
    struct ib_ring_in *r = &e->rings[place];
    struct ib_peer *p = ib_peer_find(m, (int)rank);
    size_t bytes = ib_ring_bytes(e->ring_slots, e->ring_size, e->ring_span);

    if (e->untried) {
        e->untried = false;
        e->on = ib_eager_trial(m);
        if (!e->on)
            return STRATA_ERR_UNSUPPORTED;
    }
    if (!r->memory.mr &&
        ib_ring_memory_get(m, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &r->memory) != STRATA_OK) {
        if (e->hot.n_unusable == 0)
            st_log(m->btl.context, ST_LOG_INFO, "btl_openib",
                   "%s: no memory for another ring of eager RDMA; messages go by send and receive", m->dev.name);
        return STRATA_ERR_NOMEM;
    }
    r->detect = (uint8_t)ib_detect_for(m, p);
    r->size = e->ring_size;
    r->most = ib_slot_most(e->ring_size * e->ring_span, r->detect == IB_DETECT_SEAL);
    r->order = (struct ib_ring_order){.n = e->ring_slots};
    r->flag = (const char *)r->memory.piece.memory + bytes - 1 - r->size * r->first;
    r->bottom = r->flag - r->size * (r->order.n - r->first);
    r->expect = ib_lap_flag(0);
    r->window = (uint8_t)((e->ring_slots + 1) / 2);
    r->revoked = r->quiet = false;
    r->idle = 0;
    r->arrivals = r->plan = r->taken = 0;
    r->frag = (struct st_frag){.hdr_len = IB_USUAL_HDR, .rank = p->ep.rank, .btl = &m->btl};
    r->peer = p;
    grant_clear(r, bytes);
    p->q[IB_HIGH].ring = r;
    p->owed_slots = 0;
    e->idle_ns = 0;
    m->count.rings++;
    st_log(m->btl.context, ST_LOG_DEBUG, "btl_openib",
           "%s: rank %u gets a ring of eager RDMA, its messages found by %s", m->dev.name, rank,
           grant_detection(r->detect));
    return STRATA_OK;
}

static void grant_tell(void *arg, uint32_t rank, uint32_t word)
{
    struct ib_module *m = arg;
    uint32_t place = word ? st_hot_word_place(word) : st_hot_place_of(&m->eager.hot, rank);
    struct ib_ring_in *r = place < m->eager.hot.n_places ? &m->eager.rings[place] : NULL;

    if (!r || !r->peer || r->peer->error) /* it has left, or its connection ends */
        return;
    if (word)
        r->word = word;
    else
        m->count.rings_revoked++;
    r->revoked = word == 0;
    m->eager.unsaid += !r->unsaid;
    r->unsaid = true;
    grant_say(m, r);
}

int ib_grants_open(struct ib_module *m)
{
    static const struct st_hot_ops ops = {.ready = grant_ready, .tell = grant_tell, .ordered = ib_polling_ordered};
    const struct st_polling_set_config config = {.max_members = (uint32_t)m->dev.par->eager_rdma_peers,
                                                 .promote_after = (uint32_t)m->dev.par->eager_rdma_after,
                                                 .window = (uint32_t)m->dev.par->eager_rdma_window};

    return st_hot_create(&m->eager.hot, &config, m->rte->size > 0 ? (uint32_t)m->rte->size : 1u << 30, &ops, m);
}

void ib_eager_count(struct ib_module *m, struct ib_peer *p)
{
    if (p->state == IB_UP && !p->error && !p->ringless)
        st_hot_shared_arrival(&m->eager.hot, (uint32_t)p->ep.rank);
}

/* All that was sent by the ring came before it. */
static void grant_farewell(struct ib_module *m, struct ib_peer *p, uint32_t word, bool refused)
{
    struct ib_ring_in *r = p->q[IB_HIGH].ring;

    p->ringless = p->ringless || refused;
    if (!r || r->word != word)
        return;
    ib_eager_unsay(m, r, NULL);
    ib_kept_end(m, r);
    p->q[IB_HIGH].ring = NULL;
    p->owed_slots = 0;
    r->peer = NULL;
    st_hot_left(&m->eager.hot, r->place);
}

/* ---- the sender ---- */

static struct ib_ring_out *grant_new_out(struct ib_module *m, struct ib_peer *p)
{
    struct ib_ring_out *out = calloc(1, sizeof *out);

    if (!out)
        return NULL;
    out->peer = p;
    out->next = m->eager.outs;
    m->eager.outs = out;
    return p->ring_out = out;
}

/* Bytes of data of messages that are built in the image and go inline, without displaced bytes and without a credit. */
static uint32_t grant_usual(const struct ib_module *m, const struct ib_ring_out *out)
{
    uint32_t most = (out->detect == IB_DETECT_FLAG ? (uint32_t)out->size : IB_LINE) - IB_FOOTER - IB_USUAL_HDR;
    uint32_t inlined = m->brief.most > IB_FOOTER + IB_USUAL_HDR + 8 ? m->brief.most - IB_FOOTER - IB_USUAL_HDR - 8 : 0;

    if (most > inlined)
        most = inlined;
    return most < IB_USUAL_MOST ? most : IB_USUAL_MOST;
}

/* While messages of low priority are in flight credits bound what overtakes them. */
void ib_ring_limit(struct ib_peer *p)
{
    struct ib_ring_out *out = p->ring_out;

    if (!out)
        return;
    out->open = p->state == IB_UP && !out->left && !p->reorder.on && out->detect != IB_DETECT_IMM;
    if (!out->open)
        out->plain = p->q[IB_HIGH].posted;
}

void ib_ring_stop(struct ib_peer *p)
{
    p->slots = 0;
    if (!p->ring_out)
        return;
    p->ring_out->open = false;
    p->ring_out->plain = p->q[IB_HIGH].posted;
}

static void grant_take(struct ib_peer *p, struct ib_ring_out *out, const struct ib_ring_grant *g)
{
    bool imm = g->detect == IB_DETECT_IMM;

    if (out->staging.mr && out->staging.piece.length < ib_ring_bytes(g->slots, g->size, g->span))
        ib_ring_memory_put(ib_module_of(p), &out->staging);
    out->wr = (struct ibv_send_wr){.wr_id = ib_wr_id(&p->q[IB_HIGH]),
                                   .sg_list = &out->sge,
                                   .num_sge = 1,
                                   .opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
                                   .imm_data = htonl(IB_IMM_RING),
                                   .wr.rdma.rkey = g->rkey};
    out->sge.lkey = out->staging.mr ? out->staging.mr->lkey : 0;
    out->word = g->word;
    out->left = false;
    out->n = g->slots;
    out->size = g->size;
    out->span = g->span;
    out->detect = g->detect;
    out->most = ib_slot_most((uint32_t)g->size * g->span, g->detect == IB_DETECT_SEAL);
    out->usual = grant_usual(ib_module_of(p), out) + 1;
    out->blank = ib_footer_word(ib_lap_flag(0), 0, 0);
    out->base = g->address;
    out->bottom = g->address + ib_ring_bytes(g->slots, g->size, g->span) - (uint64_t)g->size * g->slots;
    ib_ring_aim(out, out->bottom + out->size * (g->slots - g->first));
    p->slots = g->slots;
    out->plain = p->q[IB_HIGH].posted;
    ib_burst_begin(p);
    ib_ring_limit(p);
}

static bool grant_makes_sense(const struct ib_ring_grant *g)
{
    return g->word != 0 && g->slots <= IB_SLOTS_MOST && g->detect < IB_DETECTS &&
           (g->slots == 0 || (g->first < g->slots && g->size >= IB_LINE && g->size % IB_LINE == 0 && g->span >= 1 &&
                              (uint32_t)g->size * g->span <= IB_SLOT_MOST));
}

static void grant_leave(struct ib_module *m, struct ib_ring_out *out, uint32_t word)
{
    out->left = true;
    ib_ring_stop(out->peer);
    out->word = word;
    m->eager.unsaid += !out->unsaid;
    out->unsaid = true;
    grant_say_farewell(m, out);
}

bool ib_eager_control(struct ib_module *m, struct ib_peer *p, bool farewell, const void *body, uint32_t len)
{
    struct ib_ring_out *out = p->ring_out;
    struct ib_ring_grant g;

    if (len != sizeof g)
        return false;
    memcpy(&g, body, sizeof g);
    if (!grant_makes_sense(&g))
        return false;
    if (farewell) {
        grant_farewell(m, p, g.word, g.refused);
        return true;
    }
    if (p->state != IB_UP) /* it ends for all */
        return true;
    if (!out && m->dev.par->eager_rdma != IB_EAGER_OFF)
        out = grant_new_out(m, p);
    if (!out) { /* eager RDMA is off here, or there is no memory */
        m->eager.unsaid += p->ring_refused == 0;
        m->eager.refused += p->ring_refused == 0;
        p->ring_refused = g.word;
        grant_say_refused(m, p);
        return true;
    }
    if (g.slots && (out->word != 0 || out->unsaid))
        return false;
    if (g.slots)
        grant_take(p, out, &g);
    else
        grant_leave(m, out, g.word);
    return true;
}
