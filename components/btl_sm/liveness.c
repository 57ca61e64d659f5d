/* Whoever ends without a word. Most launchers tell of it; Open MPI's mpirun --enable-recovery does not. So the
 * processes of others are looked for now and then, when there is nothing else to do: of those attached, of those who
 * send here and are not attached, and of those who could not be. Who is missed twice is told of: rings and queue were
 * empty in between, so that what it had sent has been read. */
#include "liveness.h"
#include "senders.h"

#include <stdlib.h>

#include <strata/sdk/clock.h>

enum {
    LOOK_EVERY_MS = 100,
    MOST_ASKED = 4,     /* senders in one look whose pid the rte is asked for, which may take a while */
    PID_LIMIT = 1 << 24 /* Linux has none above 2^22 */
};

/* A rank of this machine that could not be attached, and whose process lived then. */
struct sm_doubt {
    struct sm_doubt *next;
    int rank;
    uint32_t pid;
};

static void sm_tell_ended(struct sm_module *m, int rank)
{
    if (m->btl.peer_failed)
        m->btl.peer_failed(m->btl.peer_failed_arg, rank, STRATA_ERR_PEER, "its process has ended");
}

uint32_t sm_pid_of(struct sm_module *m, int rank)
{
    struct sm_card card;

    if (sm_card_fetch(m, rank, &card, NULL, 0) != STRATA_OK || card.pid_ns != m->card.pid_ns || card.pid >= PID_LIMIT)
        return 0;
    return card.pid;
}

static void sm_look_for_attached(struct sm_module *m)
{
    for (struct sm_peer *p = m->peers; p; p = p->next) {
        if (p->gone || p->died || p->failed || sm_peer_alive(p))
            continue;
        /* In this order: who ends in order sets it before it dies. */
        if (atomic_load_explicit(&p->header->closing, memory_order_acquire))
            continue;
        if (p->missed)
            sm_peer_died(p);
        p->missed = true;
    }
}

static void sm_look_for_senders(struct sm_module *m)
{
    int asked = 0;

    for (uint32_t i = 0; i < m->n_dir; i++) {
        struct sm_sender *s = &m->senders[i];
        int rank = sm_rank_at(m, i);

        if (s->name == 0 || s->told || s->peer || (!s->asked && asked == MOST_ASKED))
            continue;
        if (!s->asked) {
            s->pid = sm_pid_of(m, rank) & (PID_LIMIT - 1);
            s->asked = 1;
            asked++;
        }
        /* Who ends in order marks its entry before it dies. */
        if (s->pid == 0 || sm_process_alive(s->pid) || sm_peer_find(m, rank) || sm_has_left(m, i))
            continue;
        if (s->missed) {
            s->told = 1;
            sm_tell_ended(m, rank);
        }
        s->missed = 1;
    }
}

static void sm_look_for_doubts(struct sm_module *m)
{
    struct sm_doubt **at = &m->doubts, *d;

    while ((d = *at) != NULL) {
        if (sm_process_alive(d->pid)) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        sm_tell_ended(m, d->rank);
        free(d);
    }
}

void sm_look_for_ended(struct sm_module *m)
{
    int64_t now = st_now_ms();

    if (now < m->look_at_ms)
        return;
    m->look_at_ms = now + LOOK_EVERY_MS;
    sm_look_for_attached(m);
    sm_look_for_senders(m);
    sm_look_for_doubts(m);
}

void sm_doubt(struct sm_module *m, int rank)
{
    uint32_t pid = sm_pid_of(m, rank);
    struct sm_doubt *d = m->doubts;

    while (d && d->rank != rank)
        d = d->next;
    if (d || pid == 0)
        return;
    if (!sm_process_alive(pid)) {
        sm_tell_ended(m, rank);
        return;
    }
    d = malloc(sizeof *d);
    if (!d)
        return; /* the launcher may still tell */
    *d = (struct sm_doubt){m->doubts, rank, pid};
    m->doubts = d;
}

void sm_doubts_free(struct sm_module *m)
{
    struct sm_doubt *d;

    while ((d = m->doubts) != NULL) {
        m->doubts = d->next;
        free(d);
    }
}
