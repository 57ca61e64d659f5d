/* The order in which blocks leave: those that have arrived first, then at once the rest (Qian and Afsahi, 4.2), each
 * member beginning with the one behind it; the unaware form waits at the first that cannot be sent to. */
#include "op.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "support/run_suite.h"

enum { N = 6, ME = 2, CELL = 100 };

/* A path that writes down whom a block has gone to. */
struct wire {
    struct st_btl btl;
    int to[N], n;
};

struct fake {
    struct arrival a;
    strata_comm_t comm;
    struct st_coll_group group;
    struct wire wire;
    struct st_btl_endpoint ep[N];
    struct st_bml_peer *bml[N];
    struct st_peer peer[N];
    struct slot *s;
    struct op *op;
    struct in in[N];
    char block[N * CELL];
};

static int wire_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                     uint32_t len)
{
    struct wire *w = (struct wire *)ep->btl;
    (void)data;
    ck_assert(am == ST_AM_COLL && hdr_len == sizeof(struct wire_data) && len == CELL && w->n < N);
    ck_assert_uint_eq(((const struct wire_data *)hdr)->type, ARRIVAL_DATA);
    w->to[w->n++] = ep->rank;
    return STRATA_OK;
}

static const struct st_btl_ops wire_ops = {.send = wire_send};

/* A call that has begun at ME, all of whose blocks fit the landing cells. */
static void fake_make(struct fake *f, bool aware)
{
    memset(f, 0, sizeof(*f));
    f->comm.size = N;
    f->comm.rank = ME;
    f->group.comm = &f->comm;
    atomic_init(&f->group.failed, -1);
    f->wire.btl.ops = &wire_ops;
    f->wire.btl.max_send = CELL;
    f->s = calloc(1, sizeof(*f->s) + N * sizeof(f->s->member[0]));
    f->op = calloc(1, sizeof(*f->op) + N * sizeof(f->op->out[0]));
    ck_assert(f->s && f->op);
    f->s->base.group = &f->group;
    f->s->a = &f->a;
    f->s->n = f->s->n_all = N;
    f->op->slot = f->s;
    f->op->root = -1;
    f->op->in = f->in;
    f->op->aware = aware;
    f->op->block = CELL;
    f->op->from = f->block;
    f->op->outs_left = N - 1;
    for (int i = 0; i < N; i++) {
        f->bml[i] = calloc(1, sizeof(*f->bml[i]) + sizeof(f->bml[i]->paths[0]));
        ck_assert_ptr_nonnull(f->bml[i]);
        f->ep[i] = (struct st_btl_endpoint){.btl = &f->wire.btl, .rank = i};
        f->bml[i]->n_paths = 1;
        f->bml[i]->paths[0].ep = &f->ep[i];
        f->peer[i].bml = f->bml[i];
        f->peer[i].rank = i;
        f->s->member[i].peer = i == ME ? NULL : &f->peer[i];
        f->s->member[i].met = true;
        f->s->member[i].cell = CELL;
        f->op->out[i].op = f->op;
        f->op->out[i].to = i;
    }
    f->op->out[ME].state = OUT_DONE;
}

static void fake_free(struct fake *f)
{
    for (int i = 0; i < N; i++)
        free(f->bml[i]);
    free(f->op);
    free(f->s);
}

static void sent_to(const struct fake *f, const int *to, int n)
{
    ck_assert_int_eq(f->wire.n, n);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(f->wire.to[i], to[i]);
    ck_assert_int_eq(f->op->outs_left, N - 1 - n);
}

START_TEST(each_begins_with_the_one_behind_it)
{
    static const int to[] = {3, 4, 5, 0, 1};
    for (int aware = 0; aware < 2; aware++) {
        struct fake f;
        fake_make(&f, aware);
        out_begin(f.op, 0);
        sent_to(&f, to, N - 1);
        fake_free(&f);
    }
}
END_TEST

/* A block, an advert, or a credit of a later call says that a member has arrived. */
START_TEST(first_those_that_have_arrived)
{
    static const int aware[] = {5, 0, 1, 3, 4}, unaware[] = {3, 4, 5, 0, 1};
    for (int form = 0; form < 2; form++) {
        struct fake f;
        fake_make(&f, form);
        f.s->member[1].came[0].begun = true;
        f.s->member[5].came[0].advertised = true; /* of epoch 0, as the call */
        f.s->member[0].seen = 1;
        out_begin(f.op, 0);
        sent_to(&f, form ? aware : unaware, N - 1);
        fake_free(&f);
    }
}
END_TEST

/* To a member that is not met nothing can be sent: Direct waits there, PAP_Direct goes on, and neither sends twice when
 * it has come. */
START_TEST(nobody_waits_for_another)
{
    static const int aware[] = {3, 5, 0, 1, 4}, unaware[] = {3, 4, 5, 0, 1};
    for (int form = 0; form < 2; form++) {
        struct fake f;
        fake_make(&f, form);
        f.s->member[4].met = false;
        out_begin(f.op, 0);
        sent_to(&f, form ? aware : unaware, form ? N - 2 : 1);
        f.s->member[4].met = true;
        out_advert(f.op, 4);
        sent_to(&f, form ? aware : unaware, N - 1);
        fake_free(&f);
    }
}
END_TEST

/* A block that does not fit the cell waits for the advert alone. */
START_TEST(a_long_block_waits_for_its_advert)
{
    static const int to[] = {3, 4, 0, 1, 5};
    struct fake f;
    fake_make(&f, true);
    f.s->member[5].cell = CELL - 1;
    f.s->member[5].seen = 1; /* it is ahead, and says where the block goes later */
    out_begin(f.op, 0);
    sent_to(&f, to, N - 2);
    f.s->member[5].came[0].advertised = true;
    out_advert(f.op, 5);
    sent_to(&f, to, N - 1);
    ck_assert(!f.s->member[5].came[0].advertised);
    ck_assert_uint_eq(f.a.counted[COUNT_TO_CELLS], N - 2);
    ck_assert_uint_eq(f.a.counted[COUNT_ON_DEMAND], 1);
    fake_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coll_arrival-out");
    TCase *tc = tcase_create("order");
    tcase_add_test(tc, each_begins_with_the_one_behind_it);
    tcase_add_test(tc, first_those_that_have_arrived);
    tcase_add_test(tc, nobody_waits_for_another);
    tcase_add_test(tc, a_long_block_waits_for_its_advert);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
