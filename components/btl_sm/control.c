/* Control messages: of grants that have changed, and calls to help with a copy. */
#include "peer.h"
#include "progress.h"
#include "send.h"
#include "single_copy.h"

void sm_control(struct sm_module *m, uint32_t src, uint64_t word, const struct st_frag *f)
{
    switch ((enum sm_ctl)sm_word_kind(word)) {
    case SM_CTL_GRANTS: {
        struct sm_peer *p = sm_peer_find(m, f->rank);
        if (p && p->connected) {
            uint32_t g = atomic_load_explicit(p->grant, memory_order_acquire);
            if (st_hot_turn(&p->hot, g) == ST_HOT_LEAVE)
                (void)sm_grant_changed(p, g); /* no room: the next send or nudge tries again */
        }
        break;
    }
    case SM_CTL_COOP:
        sm_coop_called(m, src, f->data, f->len);
        break;
    default:
        sm_peer_violation(m, f->rank, "an unknown control message");
    }
}

static int sm_nudge_one(void *arg, uint32_t ring, uint32_t local)
{
    struct sm_module *m = arg;
    struct sm_peer *p = sm_peer_of(m, m->rings[ring].rank);

    (void)local;
    return p ? sm_send_ctl(p, SM_CTL_GRANTS, NULL, 0) : STRATA_ERR_PEER;
}

void sm_nudge(struct sm_module *m)
{
    st_hot_nudge(&m->hot, sm_nudge_one);
}
