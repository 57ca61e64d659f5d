/* Pieces of a bcast's block: their sizes, arrivals in any order, by puts and then by messages, and what may go on. */
#include "op.h"

#include <check.h>
#include <stdlib.h>
#include "support/random.h"
#include "support/run_suite.h"

enum { N = 3, SOURCE = 1, BLOCK = 10000, LEAST = 100 };

/* Member 0 gets the block of SOURCE and passes it on to member 2. */
struct fake {
    struct arrival a;
    struct slot *s;
    struct op *op;
    struct in in[N];
};

static void fake_make(struct fake *f)
{
    *f = (struct fake){.s = calloc(1, sizeof(*f->s) + N * sizeof(f->s->member[0])),
                       .op = calloc(1, sizeof(*f->op) + N * sizeof(f->op->out[0]))};
    ck_assert(f->s && f->op);
    f->s->a = &f->a;
    f->s->n = f->s->n_all = N;
    f->op->slot = f->s;
    f->op->in = f->in;
    f->op->source = SOURCE;
    f->op->relays = f->op->same = true;
    f->op->block = f->op->same_bytes = BLOCK;
    f->op->piece = arrival_piece(BLOCK, LEAST);
    f->in[SOURCE].n_puts = PIECES_MOST;
    f->in[SOURCE].put = true;
    for (int i = 0; i < N; i++)
        f->op->out[i].to = i;
}

static void fake_free(struct fake *f)
{
    free(f->op);
    free(f->s);
}

static unsigned n_pieces(const struct fake *f)
{
    return (unsigned)((BLOCK + f->op->piece - 1) / f->op->piece);
}

/* The numbers from 0 to n - 1 in a random order. */
static void shuffled(struct rnd *r, unsigned n, unsigned *v)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned k = rnd_below(r, i + 1);
        v[i] = v[k];
        v[k] = i;
    }
}

START_TEST(at_most_sixteen_and_none_shorter_than_the_least)
{
    static const size_t bytes[] = {0, 1, 63, 64, 65, 1000, 1024, 4097, 100000, 1 << 20, (1 << 20) + 1, (size_t)1 << 40};
    static const size_t least[] = {0, 1, 64, 1000, 131072};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
        for (size_t k = 0; k < sizeof(least) / sizeof(least[0]); k++) {
            size_t piece = arrival_piece(bytes[i], least[k]);
            if (least[k] == 0 || bytes[i] <= least[k]) {
                ck_assert_uint_eq(piece, 0);
                continue;
            }
            ck_assert_uint_ge(piece, least[k]);
            ck_assert_uint_le((bytes[i] + piece - 1) / piece, PIECES_MOST);
        }
}
END_TEST

START_TEST(pieces_land_in_any_order)
{
    struct rnd r = {(uint64_t)_i + 1};
    struct fake f;
    fake_make(&f);
    unsigned order[PIECES_MOST] = {0}, n = n_pieces(&f), landed = 0;
    ck_assert_uint_gt(n, 8);
    shuffled(&r, n, order);
    for (unsigned i = 0; i < n; i++) {
        size_t whole = 0;
        ck_assert(f.in[SOURCE].put);
        ck_assert(arrival_piece_landed(f.op, SOURCE, order[i]));
        ck_assert(!arrival_piece_landed(f.op, SOURCE, order[i])); /* a second time it is not true */
        landed |= 1u << order[i];
        while (landed >> whole & 1u)
            whole++;
        size_t here = whole * f.op->piece;
        ck_assert_uint_eq(f.in[SOURCE].here, here < BLOCK ? here : BLOCK);
    }
    ck_assert_uint_eq(f.s->member[SOURCE].came[0].got, BLOCK);
    ck_assert(!arrival_piece_landed(f.op, SOURCE, n));
    ck_assert(!arrival_piece_landed(f.op, SOURCE, PIECES_MOST));
    fake_free(&f);
}
END_TEST

/* Some were put, then the path could not put any more, and messages bring the rest; notices come whenever they like. */
START_TEST(messages_bring_the_rest)
{
    struct rnd r = {(uint64_t)_i + 1};
    struct fake f;
    fake_make(&f);
    unsigned order[PIECES_MOST] = {0}, n_put = rnd_below(&r, n_pieces(&f)), landed = 0;
    size_t at = n_put * f.op->piece, here = 0;
    bool any = false;
    shuffled(&r, n_put, order);
    while (landed < n_put || at < BLOCK) {
        if (landed < n_put && (at == BLOCK || rnd_below(&r, 2))) {
            ck_assert(f.in[SOURCE].put);
            ck_assert(arrival_piece_landed(f.op, SOURCE, order[landed++]));
        } else {
            size_t part = 1 + rnd_below(&r, 700);
            part = part < BLOCK - at ? part : BLOCK - at;
            arrival_part_came(f.op, SOURCE, at, part);
            at += part;
            any = true;
        }
        ck_assert_uint_ge(f.in[SOURCE].here, here);
        here = f.in[SOURCE].here;
        if (landed < n_put)
            ck_assert_uint_lt(here, n_put * f.op->piece);
        ck_assert_int_eq(f.in[SOURCE].put, landed < n_put || !any); /* something may be put here still */
    }
    if (n_put == 0)
        ck_assert_uint_eq(here, BLOCK);
    fake_free(&f);
}
END_TEST

/* A stop that overtakes notices: memory is not given back before the pieces have landed that were put. */
START_TEST(a_stop_waits_for_what_was_put)
{
    struct fake f;
    fake_make(&f);
    ck_assert(arrival_piece_landed(f.op, SOURCE, 1));
    arrival_puts_end(f.op, SOURCE, 3);
    ck_assert(f.in[SOURCE].put);
    ck_assert(arrival_piece_landed(f.op, SOURCE, 2));
    ck_assert(f.in[SOURCE].put);
    ck_assert(arrival_piece_landed(f.op, SOURCE, 0));
    ck_assert(!f.in[SOURCE].put);
    fake_free(&f);
    fake_make(&f);
    arrival_puts_end(f.op, SOURCE, 0);
    ck_assert(!f.in[SOURCE].put);
    fake_free(&f);
}
END_TEST

/* Puts are whole pieces, messages take all up to the first gap. */
START_TEST(what_is_here_goes_on)
{
    struct fake f;
    fake_make(&f);
    struct out *o = &f.op->out[2];
    size_t piece = f.op->piece;
    ck_assert(!arrival_piece_range(f.op, 2, true));
    ck_assert(!arrival_piece_range(f.op, 2, false));
    ck_assert(arrival_piece_landed(f.op, SOURCE, 1));
    ck_assert(!arrival_piece_range(f.op, 2, false));
    arrival_part_came(f.op, SOURCE, 0, piece - 1);
    ck_assert(!arrival_piece_range(f.op, 2, true));
    ck_assert(arrival_piece_range(f.op, 2, false));
    ck_assert(o->sent == 0 && o->end == piece - 1);
    ck_assert_uint_eq(f.a.counted[COUNT_PIECES_RELAYED], 1);
    arrival_part_came(f.op, SOURCE, piece - 1, 1); /* now the second piece counts, too */
    ck_assert(arrival_piece_range(f.op, 2, false));
    ck_assert(o->sent == 0 && o->end == 2 * piece);
    ck_assert(arrival_piece_range(f.op, 2, true));
    ck_assert(o->sent == 0 && o->end == piece);
    o->gone = piece;
    ck_assert(arrival_piece_range(f.op, 2, true));
    ck_assert(o->sent == piece && o->end == 2 * piece);
    o->gone = 2 * piece;
    ck_assert(!arrival_piece_range(f.op, 2, true));
    f.in[SOURCE].done = true;
    ck_assert(arrival_piece_range(f.op, 2, false));
    ck_assert(o->sent == 2 * piece && o->end == BLOCK);
    fake_free(&f);
}
END_TEST

/* A member that says more than the block has: nothing behind it counts. */
START_TEST(a_block_that_is_too_long)
{
    struct fake f;
    fake_make(&f);
    arrival_part_came(f.op, SOURCE, 0, BLOCK - 10);
    arrival_part_came(f.op, SOURCE, BLOCK - 10, 100);
    ck_assert_uint_eq(f.in[SOURCE].here, BLOCK);
    arrival_part_came(f.op, SOURCE, BLOCK, 100);
    ck_assert_uint_eq(f.in[SOURCE].here, BLOCK);
    fake_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pieces");
    TCase *tc = tcase_create("pieces");
    tcase_add_test(tc, at_most_sixteen_and_none_shorter_than_the_least);
    tcase_add_loop_test(tc, pieces_land_in_any_order, 0, 20);
    tcase_add_loop_test(tc, messages_bring_the_rest, 0, 50);
    tcase_add_test(tc, a_stop_waits_for_what_was_put);
    tcase_add_test(tc, what_is_here_goes_on);
    tcase_add_test(tc, a_block_that_is_too_long);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
