/* Heads as immediate data: whatever one end says the other end hears, and nothing is lost of credits. */
#include <check.h>
#include <stdlib.h>
#include "imm_head.h"
#include "send_inl.h"
#include "support/run_suite.h"

#define PACKET 1024u

struct end {
    struct ib_peer peer;
    struct ib_qp *q;
};

static void end_init(struct end *e)
{
    memset(e, 0, sizeof *e);
    e->q = &e->peer.q[IB_HIGH];
    e->q->peer = &e->peer;
    e->q->packet = PACKET;
}

static struct ib_lead say(struct end *e, const void *hdr, uint32_t len)
{
    struct ib_lead l;

    ib_lead_make(e->q, ST_AM_PML, hdr, IB_USUAL_HDR, len, &l);
    ib_lead_went(e->q, &l, hdr);
    return l;
}

/* As the receiver does: the head is returned, the header is what `heard` holds then. */
static struct ib_head hear(struct end *e, const struct ib_lead *l, const void *hdr)
{
    struct ib_head h = l->head;

    if (l->as_imm)
        ck_assert(ib_imm_heard(&e->q->heard, ntohl(l->imm), &h));
    else if (l->keep)
        ib_keep_hdr(&e->q->heard, hdr);
    return h;
}

static const unsigned char first[IB_USUAL_HDR] = {1, 0, 0xff, 0, 7, 0, 0, 0, 42, 0, 0, 0, 3, 0, 0, 0};

START_TEST(only_where_a_packet_is_saved)
{
    static const struct {
        uint32_t len;
        bool saves;
    } row[] = {{0, false},    {1, false},    {1000, false}, {1001, true}, {1024, true},
               {1025, false}, {2024, false}, {2025, true},  {8192, true}, {8193, false}};
    struct end a;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        end_init(&a);
        struct ib_lead l = say(&a, first, row[i].len);
        ck_assert(!l.as_imm && l.keep == row[i].saves);
        l = say(&a, first, row[i].len);
        ck_assert(l.as_imm == row[i].saves && !l.keep);
    }
    end_init(&a);
    for (int i = 0; i < 2; i++) { /* other headers and other messages go as they are */
        struct ib_lead l;
        ib_lead_make(a.q, ST_AM_PML, first, IB_USUAL_HDR + 8, 1024, &l);
        ck_assert(!l.as_imm && !l.keep);
        ib_lead_make(a.q, (enum st_am)(ST_AM_PML + 1), first, IB_USUAL_HDR, 1024, &l);
        ck_assert(!l.as_imm && !l.keep);
    }
}
END_TEST

START_TEST(up_to_two_bytes)
{
    struct end a, b;
    unsigned char hdr[IB_USUAL_HDR];

    for (unsigned i = 0; i < IB_USUAL_HDR; i++)
        for (unsigned j = 0; j < IB_USUAL_HDR; j++) {
            end_init(&a);
            end_init(&b);
            memcpy(hdr, first, sizeof hdr);
            struct ib_lead l = say(&a, hdr, PACKET);
            ck_assert(l.keep && l.head.hdr_len == (IB_USUAL_HDR | IB_HDR_KEPT));
            hear(&b, &l, hdr);
            hdr[i] ^= 0x80;
            hdr[j] ^= 0x55;
            l = say(&a, hdr, PACKET);
            ck_assert(l.as_imm);
            hear(&b, &l, hdr);
            ck_assert_mem_eq(b.q->heard.word, hdr, sizeof hdr);
            hdr[i] ^= 1;
            hdr[(i + 1) % IB_USUAL_HDR] ^= 1;
            hdr[(i + 2) % IB_USUAL_HDR] ^= 1;
            l = say(&a, hdr, PACKET);
            ck_assert(!l.as_imm && l.keep);
        }
}
END_TEST

/* A header that did not go is not said to be like. */
START_TEST(what_did_not_go)
{
    struct end a;
    struct ib_lead l;

    end_init(&a);
    a.peer.owed[IB_HIGH] = 40;
    a.peer.owed[IB_LOW] = 3;
    ib_lead_make(a.q, ST_AM_PML, first, IB_USUAL_HDR, PACKET, &l);
    ck_assert_uint_eq(a.peer.owed[IB_HIGH], 0);
    give_back_owed(&a.peer, &l.head);
    ck_assert(a.peer.owed[IB_HIGH] == 40 && a.peer.owed[IB_LOW] == 3);
    l = say(&a, first, PACKET);
    ck_assert(!l.as_imm && l.keep && l.head.credits[IB_HIGH] == 40);
    a.peer.owed[IB_HIGH] = 40;
    ib_lead_make(a.q, ST_AM_PML, first, IB_USUAL_HDR, PACKET, &l);
    ck_assert(l.as_imm);
    ck_assert_uint_eq(a.peer.owed[IB_HIGH], 40 - IB_IMM_CREDITS);
    give_back_owed(&a.peer, &l.head);
    ck_assert_uint_eq(a.peer.owed[IB_HIGH], 40);
}
END_TEST

START_TEST(never_said)
{
    struct end a;
    struct ib_head h;

    end_init(&a);
    for (unsigned i = 0; i < 100; i++)
        ck_assert(!ib_imm_heard(&a.q->heard, i * 0x9e3779b1u, &h));
}
END_TEST

/* Headers with and without a likeness, lengths and credits at random: header and credits arrive. */
START_TEST(any_order)
{
    struct end a, b;
    unsigned char hdr[IB_USUAL_HDR];
    uint64_t owed[IB_PRIORITIES] = {0}, heard[IB_PRIORITIES] = {0};
    unsigned imms = 0;

    srand(5);
    end_init(&a);
    end_init(&b);
    memcpy(hdr, first, sizeof hdr);
    for (int round = 0; round < 100000; round++) {
        for (int i = rand() % 4; i > 0; i--)
            hdr[rand() % (int)IB_USUAL_HDR] = (unsigned char)rand();
        for (int i = 0; i < IB_PRIORITIES; i++) {
            unsigned more = (unsigned)rand() % 24;
            a.peer.owed[i] = (uint16_t)(a.peer.owed[i] + more);
            owed[i] += more;
        }
        struct ib_lead l = say(&a, hdr, rand() % 3 ? PACKET : 100);
        struct ib_head h = hear(&b, &l, hdr);
        if (l.as_imm || l.keep)
            ck_assert_mem_eq(b.q->heard.word, hdr, sizeof hdr);
        imms += l.as_imm;
        for (int i = 0; i < IB_PRIORITIES; i++)
            heard[i] += h.credits[i];
    }
    ck_assert_uint_gt(imms, 1000);
    for (int i = 0; i < IB_PRIORITIES; i++)
        ck_assert_uint_eq(owed[i], heard[i] + a.peer.owed[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("heads as immediate data");
    TCase *t = tcase_create("all");

    tcase_add_test(t, only_where_a_packet_is_saved);
    tcase_add_test(t, up_to_two_bytes);
    tcase_add_test(t, what_did_not_go);
    tcase_add_test(t, never_said);
    tcase_add_test(t, any_order);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
