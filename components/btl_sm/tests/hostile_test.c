/* A peer that writes nonsense, memory that runs out, a segment that is somebody else's: a named error each time. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <strata/sdk/btl_rdma.h>
#include "area.h"
#include "rig.h"
#include "send.h"
#include "support/run_suite.h"

struct pair {
    struct rig_board *board;
    struct rig_rank *r[2];
    struct st_btl_endpoint *ep[2];
    int delivered;
};
static void deliver(void *arg, const struct st_frag *f)
{
    (void)f;
    ((struct pair *)arg)->delivered++;
}
static void pair_open(struct pair *p)
{
    memset(p, 0, sizeof *p);
    p->board = rig_board(2);
    for (int i = 0; i < 2; i++) {
        p->r[i] = malloc(sizeof *p->r[i]);
        rig_init(p->r[i], p->board, i);
        p->r[i]->par.promote_after = 2;
        rig_open(p->r[i]);
        p->r[i]->btl->am[ST_AM_TEST].fn = deliver;
        p->r[i]->btl->am[ST_AM_TEST].arg = p;
    }
    for (int i = 0; i < 2; i++)
        p->ep[i] = rig_connect(p->r[i], 1 - i);
}
static void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        rig_close(p->r[i]);
        free(p->r[i]);
    }
    munmap(p->board, sizeof *p->board);
}
static void progress(struct pair *p, int i)
{
    for (int k = 0; k < 4; k++)
        p->r[i]->btl->ops->progress(p->r[i]->btl);
}
/* Puts a slot of any content into rank 0's shared queue, as entry `src` of its directory. */
static void forge(struct pair *p, uint32_t src, uint64_t word, uint32_t cell)
{
    struct sm_peer *to = sm_peer(p->ep[1]);
    uint64_t full;
    struct sm_slot *s = sm_queue_claim(&to->header->tail, to->slots, to->n_slots, src, &full);
    s->word = word;
    s->cell = cell;
    sm_queue_publish(s, full);
}

#define TEST_KIND ((uint32_t)ST_AM_TEST << 16)
static const struct {
    uint64_t len;
    uint32_t hdr, flags, cell;
} bad_slots[] = {
    {1000, 8, TEST_KIND, 0},                               /* inline, longer than the slot */
    {UINT32_MAX, 8, TEST_KIND, 0},                         /* a sum that runs over */
    {4, 49, TEST_KIND, 0},                                 /* header too long */
    {100000, 8, TEST_KIND | SM_WORD_DATA, 0},              /* longer than a cell */
    {100, 8, TEST_KIND | SM_WORD_DATA, 100000},            /* a cell that does not exist */
    {8, 8, 7u << 16, 0},                                   /* for nobody */
    {0, 0, 6u << 16 | SM_WORD_CTL, 0},                     /* unknown control */
    {7, 0, (uint32_t)SM_CTL_COOP << 16 | SM_WORD_CTL, 0},  /* a call for help of the wrong size */
    {48, 0, (uint32_t)SM_CTL_COOP << 16 | SM_WORD_CTL, 0}, /* one that makes no sense */
};

START_TEST(bad_slot)
{
    struct pair p;
    pair_open(&p);
    forge(&p, sm_peer(p.ep[1])->my_index, sm_word(bad_slots[_i].flags, bad_slots[_i].hdr, (uint32_t)bad_slots[_i].len),
          bad_slots[_i].cell);
    progress(&p, 0);
    ck_assert_int_eq(p.delivered, 0);
    ck_assert_int_eq(p.r[0]->failures, 1);
    ck_assert_int_eq(p.r[0]->last_failure, STRATA_ERR_PROTOCOL);
    forge(&p, sm_peer(p.ep[1])->my_index, sm_word(TEST_KIND, 1000, 4), 0); /* said once per peer */
    progress(&p, 0);
    ck_assert_int_eq(p.r[0]->failures, 1);
    ck_assert_int_eq(p.r[0]->btl->ops->send(p.ep[0], ST_AM_TEST, "x", 1, NULL, 0), STRATA_ERR_PEER);
    pair_close(&p);
}
END_TEST

START_TEST(bad_source)
{
    struct pair p;
    pair_open(&p);
    forge(&p, 1000, sm_word(TEST_KIND, 8, 8), 0);
    forge(&p, sm_peer(p.ep[1])->my_index, sm_word(TEST_KIND, 8, 8), 0);
    progress(&p, 0);
    ck_assert_int_eq(p.delivered, 1); /* the queue goes on */
    ck_assert_uint_eq(sm_module(p.r[0]->btl)->count.violations, 1);
    pair_close(&p);
}
END_TEST

static const uint64_t bad_words[] = {
    (uint64_t)57 << 32 | TEST_KIND,                        /* inline, longer than the line */
    (uint64_t)UINT32_MAX << 32 | TEST_KIND | 8u << 24,     /* a sum that runs over */
    (uint64_t)(1u << 20) << 32 | TEST_KIND | SM_WORD_DATA, /* longer than the data area */
    (uint64_t)UINT32_MAX << 32 | TEST_KIND | SM_WORD_DATA | SM_WORD_ROLL,
    (uint64_t)100 << 32 | TEST_KIND | SM_WORD_DATA | 60u << 24, /* header too long */
    (uint64_t)100 << 32 | TEST_KIND | SM_WORD_DATA,             /* data, and there is no data area yet */
    (uint64_t)2 << 32 | SM_AREA_TURN << 16 | SM_WORD_AREA,      /* to an area that was not offered */
    (uint64_t)0 << 32 | SM_AREA_TURN << 16 | SM_WORD_AREA,      /* to none */
    (uint64_t)0 << 32 | SM_AREA_NEED << 16 | SM_WORD_AREA,      /* asks for nothing */
    (uint64_t)200 << 32 | SM_AREA_WISH << 16 | SM_WORD_AREA,    /* asks for more than all */
    (uint64_t)1 << 32 | 7u << 16 | SM_WORD_AREA,                /* an unknown word */
};

START_TEST(bad_descriptor)
{
    struct pair p;
    pair_open(&p);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(p.r[1]->btl->ops->send(p.ep[1], ST_AM_TEST, "x", 1, NULL, 0), STRATA_OK);
        progress(&p, 0);
    }
    struct sm_peer *to = sm_peer(p.ep[1]);
    ck_assert_uint_ne(to->hot.word, ST_HOT_NONE);
    struct sm_desc *d = to->tx.next;
    atomic_store(&d->word, bad_words[_i] | to->tx.lap);
    int before = p.delivered;
    progress(&p, 0);
    ck_assert_int_eq(p.delivered, before);
    ck_assert_int_eq(p.r[0]->failures, 1);
    ck_assert_int_eq(p.r[0]->last_failure, STRATA_ERR_PROTOCOL);
    ck_assert_uint_eq(sm_module(p.r[0]->btl)->n_order, 0); /* not polled again */
    pair_close(&p);
}
END_TEST

START_TEST(bad_grant)
{
    struct pair p;
    pair_open(&p);
    struct sm_module *m = sm_module(p.r[0]->btl);
    atomic_store(&m->dir[sm_peer(p.ep[1])->my_index].grant, 0x12345);
    ck_assert_int_eq(p.r[1]->btl->ops->send(p.ep[1], ST_AM_TEST, "x", 1, NULL, 0), STRATA_ERR_PEER);
    ck_assert_int_eq(p.r[1]->failures, 1);
    pair_close(&p);
}
END_TEST

START_TEST(memory_for_nothing)
{
    struct rig_board *b = rig_board(2);
    struct rig_rank r;
    rig_init(&r, b, 0);
    r.par.memory_limit = 4096;
    ck_assert_int_eq(rig_try_open(&r), STRATA_ERR_NOMEM);
}
END_TEST

START_TEST(memory_for_no_cell)
{
    struct rig_board *b = rig_board(2);
    struct rig_rank *r[2];
    struct st_btl_endpoint *ep;
    for (int i = 0; i < 2; i++) {
        r[i] = malloc(sizeof *r[i]);
        rig_init(r[i], b, i);
        r[i]->par.memory_limit = 32 << 10;
        rig_open(r[i]);
    }
    ck_assert_int_eq(r[0]->btl->ops->connect(r[0]->btl, 1, &ep), STRATA_ERR_NOMEM);
    for (int i = 0; i < 2; i++) {
        rig_close(r[i]);
        free(r[i]);
    }
}
END_TEST

START_TEST(someone_elses_segment)
{
    /* The descriptor that the card names is another file by now. */
    struct rig_board *b = rig_board(2);
    struct rig_rank r[2];
    struct st_btl_endpoint *ep;
    struct sm_card card;
    for (int i = 0; i < 2; i++) {
        rig_init(&r[i], b, i);
        r[i].par.attach = SM_ATTACH_PROC;
        rig_open(&r[i]);
    }
    memcpy(&card, b->card[1], sizeof card);
    if (_i == 0)
        memcpy(&card, b->card[0], sizeof card); /* a good segment, but rank 0's */
    else if (_i == 1)
        card.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    else if (_i == 2)
        card.fd = 900; /* closed */
    else if (_i == 3)
        card.boot++; /* another machine */
    else
        card.job++;
    memcpy(b->card[1], &card, sizeof card);
    ck_assert_int_eq(r[0].btl->ops->connect(r[0].btl, 1, &ep), STRATA_ERR_UNREACHABLE);
    if (_i >= 3)
        ck_assert_int_eq(r[0].btl->ops->reach(r[0].btl, 1), STRATA_ERR_UNREACHABLE);
    for (int i = 0; i < 2; i++)
        rig_close(&r[i]);
}
END_TEST

START_TEST(socket_without_an_answer)
{
    struct rig_board *b = rig_board(2);
    struct rig_rank r[2];
    struct st_btl_endpoint *ep;
    for (int i = 0; i < 2; i++) {
        rig_init(&r[i], b, i);
        r[i].par.attach = SM_ATTACH_SOCKET;
        r[i].par.attach_timeout_ms = 50;
        rig_open(&r[i]);
    }
    ck_assert_int_eq(r[0].btl->ops->connect(r[0].btl, 1, &ep), STRATA_ERR_UNREACHABLE); /* rank 1 makes no progress */
    for (int i = 0; i < 2; i++)
        rig_close(&r[i]);
}
END_TEST

/* The number of a process that has ended. */
static uint32_t dead_process(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return (uint32_t)child;
}

START_TEST(producer_dies_with_a_claim)
{
    struct pair p;
    pair_open(&p);
    struct sm_peer *to = sm_peer(p.ep[1]);
    struct sm_card card;
    uint64_t full;
    uint32_t dead = dead_process();
    memcpy(&card, p.board->card[1], sizeof card);
    card.pid = dead; /* rank 1 is dead */
    memcpy(p.board->card[1], &card, sizeof card);
    sm_peer(p.ep[0])->pid = dead;
    ck_assert_ptr_nonnull(sm_queue_claim(&to->header->tail, to->slots, to->n_slots, to->my_index, &full));
    forge(&p, sm_peer(p.ep[1])->my_index, sm_word(TEST_KIND, 8, 8), 0);
    for (int i = 0; i < 5000; i++)
        p.r[0]->btl->ops->progress(p.r[0]->btl);
    ck_assert_int_eq(p.delivered, 1);
    pair_close(&p);
}
END_TEST

struct ended {
    struct st_btl_op op;
    int rc, times, failures_before;
    const struct rig_rank *r;
};

static void note_end(struct st_btl_op *op, int rc)
{
    struct ended *e = (struct ended *)(void *)op;
    e->rc = rc;
    e->times++;
    e->failures_before = e->r->failures;
}

/* Who finds a process dead in the middle of a copy says so before the operation ends: the launcher may be slower, and
 * nobody else would say why the message failed. */
START_TEST(peer_dies_in_a_copy)
{
    enum { LENGTH = 1 << 20 };
    struct pair p;
    pair_open(&p);
    struct sm_peer *peer = sm_peer(p.ep[0]);
    struct ended e[2] = {{.op.done = note_end, .r = p.r[0]}, {.op.done = note_end, .r = p.r[0]}};
    char *memory = calloc(1, LENGTH);
    bool get = _i % 2 == 0, is_short = _i >= 2;
    size_t length = is_short ? 4096 : LENGTH;
    if (peer->single_copy == SM_COPY_OFF) {
        pair_close(&p);
        free(memory);
        return; /* as the kernel does not allow it, nobody meets this */
    }
    peer->pid = dead_process();
    for (int i = 0; i < 2; i++) {
        uint64_t there = (uint64_t)(uintptr_t)memory;
        int rc = get ? p.r[0]->btl->rdma->get(p.ep[0], memory, there, NULL, length, NULL, &e[i].op)
                     : p.r[0]->btl->rdma->put(p.ep[0], memory, there, NULL, length, NULL, &e[i].op);
        ck_assert_int_eq(rc, is_short ? STRATA_ERR_PEER : STRATA_OK);
    }
    for (int k = 0; k < 10000 && e[1].times < 1 && !is_short; k++)
        progress(&p, 0);
    for (int i = 0; i < 2 && !is_short; i++) {
        ck_assert_int_eq(e[i].times, 1);
        ck_assert_int_eq(e[i].rc, STRATA_ERR_PEER);
        ck_assert_int_eq(e[i].failures_before, 1);
    }
    ck_assert_int_eq(p.r[0]->failures, 1);
    ck_assert_int_eq(p.r[0]->last_failure, STRATA_ERR_PEER);
    ck_assert_int_eq(p.r[0]->btl->rdma->get(p.ep[0], memory, 0, NULL, 8, NULL, &e[0].op), STRATA_ERR_PEER);
    /* What it had sent before its end is taken all the same. */
    ck_assert_int_eq(p.r[1]->btl->ops->send(p.ep[1], ST_AM_TEST, "x", 1, NULL, 0), STRATA_OK);
    progress(&p, 0);
    ck_assert_int_eq(p.delivered, 1);
    pair_close(&p);
    free(memory);
}
END_TEST

START_TEST(reach)
{
    struct pair p;
    pair_open(&p);
    ck_assert_int_eq(p.r[0]->btl->ops->reach(p.r[0]->btl, 1), STRATA_OK);
    ck_assert_int_eq(p.r[0]->btl->ops->reach(p.r[0]->btl, 0), STRATA_ERR_UNREACHABLE); /* oneself is btl_self's */
    ck_assert_int_eq(p.r[0]->btl->ops->reach(p.r[0]->btl, 5), STRATA_ERR_UNREACHABLE);
    pair_close(&p);
}
END_TEST

static void sum_lines(void *arg, const strata_mem_line_t *l)
{
    if (l->shared)
        *(size_t *)arg += l->bytes;
}

START_TEST(sizes)
{
    struct pair p;
    size_t shared = 0;
    struct sm_geometry g = {.n_dir = 96,
                            .queue_slots = 64,
                            .n_cells = 16,
                            .cell_data = 16448,
                            .n_rings = 16,
                            .ring_slots = 128,
                            .ring_data = 65536};
    struct sm_layout at;
    ck_assert_uint_le(sizeof(struct sm_peer), 256);
    /* An idle process among 64: header, grants, queue. */
    ck_assert_int_eq(sm_layout_make(&g, &at), STRATA_OK);
    ck_assert_uint_le(at.base_end, 24 << 10);
    pair_open(&p);
    p.r[0]->btl->ops->mem_report(p.r[0]->btl, sum_lines, &shared);
    ck_assert_uint_eq(shared, sm_module(p.r[0]->btl)->seg.reserved);
    char *text = p.r[0]->btl->ops->describe(p.r[0]->btl, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"rings\""));
    free(text);
    g.n_rings = 1u << 20;
    ck_assert_int_eq(sm_layout_make(&g, &at), STRATA_ERR_PROTOCOL);
    g = (struct sm_geometry){0};
    ck_assert_int_eq(sm_layout_make(&g, &at), STRATA_ERR_PROTOCOL);
    pair_close(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile");
    TCase *t = tcase_create("hostile");
    tcase_add_loop_test(t, bad_slot, 0, (int)(sizeof bad_slots / sizeof bad_slots[0]));
    tcase_add_test(t, bad_source);
    tcase_add_loop_test(t, bad_descriptor, 0, (int)(sizeof bad_words / sizeof bad_words[0]));
    tcase_add_test(t, bad_grant);
    tcase_add_test(t, memory_for_nothing);
    tcase_add_test(t, memory_for_no_cell);
    tcase_add_loop_test(t, someone_elses_segment, 0, 5);
    tcase_add_test(t, socket_without_an_answer);
    tcase_add_test(t, producer_dies_with_a_claim);
    tcase_add_loop_test(t, peer_dies_in_a_copy, 0, 4);
    tcase_add_test(t, reach);
    tcase_add_test(t, sizes);
    suite_add_tcase(s, t);
    return run_suite(s);
}
