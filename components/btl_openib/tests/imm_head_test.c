/* Heads as immediate data: whatever one end says the other end hears, and nothing is lost of credits. */
#include <check.h>
#include <stdlib.h>
#include "data/imm_head.h"
#include "data/send_inl.h"
#include "support/run_suite.h"

#define PACKET 1024u
enum { SHORT = IB_USUAL_HDR, LONG = IB_KEPT_WORDS * 8 };

static struct ib_module module; /* counts */

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

static struct ib_lead say(struct end *e, const void *hdr, uint32_t hdr_len, uint32_t len)
{
    struct ib_lead l;

    lead_make(e->q, ST_AM_PML, hdr, hdr_len, len, &l);
    lead_went(&module, e->q, &l, hdr);
    return l;
}

/* As the receiver does: the head is returned, the header is what `heard` holds then. */
static struct ib_head hear(struct end *e, const struct ib_lead *l, const void *hdr)
{
    struct ib_head h = l->head;

    if (l->as_imm)
        ck_assert(ib_imm_heard(&e->q->heard, ntohl(l->imm), &h));
    else if (l->keep)
        ib_keep_hdr(&e->q->heard, l->head.am, hdr, l->head.hdr_len & ~IB_HDR_KEPT);
    return h;
}

static const unsigned char first[LONG] = {1, 0, 0xff, 0, 7, 0, 0, 0, 42, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1, 0, 9};

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
        struct ib_lead l = say(&a, first, SHORT, row[i].len);
        ck_assert(!l.as_imm && l.keep == row[i].saves);
        l = say(&a, first, SHORT, row[i].len);
        ck_assert(l.as_imm == row[i].saves && !l.keep);
    }
    end_init(&a);
    for (int i = 0; i < 2; i++) { /* other headers and other messages go as they are */
        struct ib_lead l;
        lead_make(a.q, ST_AM_PML, first, i ? SHORT + 4 : LONG + 8, PACKET, &l);
        ck_assert(!l.as_imm && !l.keep);
    }
    /* The header of another client is kept anew, and takes the place of the one before. */
    say(&a, first, SHORT, PACKET);
    for (int i = 0; i < 2; i++) {
        struct ib_lead l;
        lead_make(a.q, ST_AM_STREAM, first, SHORT, PACKET, &l);
        ck_assert(l.as_imm == (i == 1) && l.keep == (i == 0));
        lead_went(&module, a.q, &l, first);
    }
}
END_TEST

START_TEST(up_to_two_bytes)
{
    const uint32_t size = _i ? LONG : SHORT;
    unsigned char hdr[LONG];
    struct end a, b;

    for (uint32_t i = 0; i < size; i++)
        for (uint32_t j = 0; j < size; j++) {
            end_init(&a);
            end_init(&b);
            memcpy(hdr, first, sizeof hdr);
            struct ib_lead l = say(&a, hdr, size, PACKET);
            ck_assert(l.keep && l.head.hdr_len == (size | IB_HDR_KEPT));
            hear(&b, &l, hdr);
            hdr[i] ^= 0x80;
            hdr[j] ^= 0x55;
            l = say(&a, hdr, size, PACKET);
            ck_assert(l.as_imm);
            ck_assert_uint_eq(hear(&b, &l, hdr).hdr_len, size);
            ck_assert_mem_eq(b.q->heard.word, hdr, size);
            for (uint32_t k = 0; k < 3; k++)
                hdr[(i + k) % size] ^= 1;
            l = say(&a, hdr, size, PACKET);
            ck_assert(!l.as_imm && l.keep);
            l = say(&a, hdr, size == LONG ? SHORT : LONG, PACKET); /* of another length */
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
    lead_make(a.q, ST_AM_PML, first, SHORT, PACKET, &l);
    ck_assert_uint_eq(a.peer.owed[IB_HIGH], 0);
    lead_give_back(&a.peer, &l.head);
    ck_assert(a.peer.owed[IB_HIGH] == 40 && a.peer.owed[IB_LOW] == 3);
    l = say(&a, first, SHORT, PACKET);
    ck_assert(!l.as_imm && l.keep && l.head.credits[IB_HIGH] == 40);
    a.peer.owed[IB_HIGH] = 40;
    lead_make(a.q, ST_AM_PML, first, SHORT, PACKET, &l);
    ck_assert(l.as_imm);
    ck_assert_uint_eq(a.peer.owed[IB_HIGH], 40 - IB_IMM_CREDITS);
    lead_give_back(&a.peer, &l.head);
    ck_assert_uint_eq(a.peer.owed[IB_HIGH], 40);
}
END_TEST

/* No header that it could be like, or a byte beyond it. */
START_TEST(not_to_be_heard)
{
    struct ib_head h;
    struct end a;

    end_init(&a);
    for (uint32_t i = 0; i < 100; i++)
        ck_assert(!ib_imm_heard(&a.q->heard, i * 0x9e3779b1u, &h));
    ib_keep_hdr(&a.q->heard, ST_AM_PML, first, SHORT);
    for (uint32_t place = 0; place < 1u << IB_IMM_PLACE_BITS; place++)
        for (uint32_t n = 0; n < IB_IMM_BYTES; n++)
            ck_assert(ib_imm_heard(&a.q->heard, ib_imm_byte(n, place, 7), &h) == (place < SHORT));
}
END_TEST

/* Headers with and without a likeness, lengths and credits at random: header and credits arrive. */
START_TEST(any_order)
{
    uint64_t owed[IB_PRIORITIES] = {0}, heard[IB_PRIORITIES] = {0};
    unsigned char hdr[LONG];
    struct end a, b;
    unsigned imms = 0;

    srand(5);
    end_init(&a);
    end_init(&b);
    memcpy(hdr, first, sizeof hdr);
    for (int round = 0; round < 100000; round++) {
        for (int i = rand() % 4; i > 0; i--)
            hdr[rand() % LONG] = (unsigned char)rand();
        for (int i = 0; i < IB_PRIORITIES; i++) {
            unsigned more = (unsigned)rand() % 8;
            a.peer.owed[i] = (uint16_t)(a.peer.owed[i] + more);
            owed[i] += more;
        }
        uint32_t size = rand() % 4 ? LONG : SHORT;
        struct ib_lead l = say(&a, hdr, size, rand() % 3 ? PACKET : 100);
        struct ib_head h = hear(&b, &l, hdr);
        if (l.as_imm || l.keep)
            ck_assert_mem_eq(b.q->heard.word, hdr, size);
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
    tcase_add_loop_test(t, up_to_two_bytes, 0, 2);
    tcase_add_test(t, what_did_not_go);
    tcase_add_test(t, not_to_be_heard);
    tcase_add_test(t, any_order);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
