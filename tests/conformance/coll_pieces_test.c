/* Bcasts by the leaders of nodes whose blocks go in pieces (coll_arrival): every root, lengths around those of pieces,
 * by puts, by messages, and by messages behind puts that the path has refused; over a transport whose messages and
 * notices overtake each other, too. Leaders pass on pieces before the last has come, which a counter tells. */
#include <stdatomic.h>
#include <check.h>
#include "support/random.h"
#include "support/counters.h"
#include "support/run_suite.h"
#include "support/world.h"
#include <strata/coll.h>

enum { N = 6, PIECE = 1000, LONGEST = 100000 };

#define BY_LEADERS "coll_sm_ranks=0 coll_arrival_form=pap_shm_direct coll_arrival_piece=1000 coll_arrival_cell=64 "
#define WAITING    "coll_sm_ranks=0 coll_arrival_form=shm_direct coll_arrival_piece=1000 coll_arrival_cell=64 "

static const char *const settings[] = {
    BY_LEADERS "mca_base_node=3 btl=sm,shuffle,self coll_arrival_scheme=zcopy",
    BY_LEADERS "mca_base_node=1,2 btl=shuffle,self coll_arrival_scheme=zcopy btl_shuffle_window=30 btl_shuffle_delay=9",
    BY_LEADERS "mca_base_node=2,4 btl=shuffle,self coll_arrival_scheme=copy",
    BY_LEADERS "mca_base_node=3 btl=shuffle,self coll_arrival_scheme=zcopy btl_shuffle_unsupported_percent=5",
    BY_LEADERS "mca_base_node=3 btl=sm,tcp,self coll_arrival_scheme=auto coll_arrival_put_min=1",
    WAITING "mca_base_node=2 btl=shuffle,self coll_arrival_scheme=zcopy",
};

struct sums {
    atomic_ulong relayed, refused, puts;
};

static unsigned char byte_of(size_t i, int root, size_t length)
{
    return (unsigned char)(i * 7 + i / PIECE + (size_t)root * 31 + length);
}

static void one(const struct tw_rank *r, unsigned char *block, size_t length, int root)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BCAST);
    for (size_t i = 0; i < length; i++)
        block[i] = r->rank == root ? byte_of(i, root, length) : 0;
    block[length] = 99;
    c.recv = block;
    c.count = length;
    c.root = root;
    CHECK_OK(strata_coll(r->comm, &c));
    for (size_t i = 0; i < length; i++)
        CHECK_EQ(block[i], byte_of(i, root, length));
    CHECK_EQ(block[length], 99);
}

static void bcasts(struct tw_rank *r)
{
    static const size_t lengths[] = {1, PIECE, PIECE + 1, 2 * PIECE, 5555, 16 * PIECE, 16 * PIECE + 1, LONGEST};
    struct rnd rnd = {17}; /* the same at all ranks */
    struct sums *sums = r->arg;
    unsigned char *block = malloc(LONGEST + 1);
    CHECK(block);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int root = 0; root < r->n; root++)
            one(r, block, lengths[i], root);
    for (int i = 0; i < 20; i++) {
        size_t length = rnd_below(&rnd, LONGEST);
        one(r, block, length, (int)rnd_below(&rnd, (uint32_t)r->n));
    }
    tw_quiesce(r);
    atomic_fetch_add(&sums->relayed, counted(r->s, "coll", "arrival", "pieces_relayed"));
    atomic_fetch_add(&sums->refused, counted(r->s, "coll", "arrival", "refused"));
    atomic_fetch_add(&sums->puts, counted(r->s, "coll", "arrival", "blocks_put"));
    free(block);
}

/* A block whose pieces have all come before its leader looks is passed on as a whole. Where all came so, as they may on
 * a busy machine, they are sent again. */
START_TEST(every_root_and_length)
{
    struct sums sums = {0, 0, 0};
    for (int tries = 0; tries < 5 && atomic_load(&sums.relayed) == 0; tries++)
        tw_run(&(struct tw_options){.n = N, .settings = settings[_i]}, bcasts, &sums);
    unsigned long relayed = atomic_load(&sums.relayed), puts = atomic_load(&sums.puts);
    printf("%s: %lu pieces were passed on before the last had come, %lu blocks put\n", settings[_i], relayed, puts);
    ck_assert_uint_gt(relayed, 0);
    ck_assert_uint_eq(atomic_load(&sums.refused), 0);
    ck_assert(strstr(settings[_i], "scheme=copy") ? puts == 0 : puts > 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coll_pieces");
    TCase *tc = tcase_create("coll_pieces");
    tcase_add_loop_test(tc, every_root_and_length, 0, (int)(sizeof(settings) / sizeof(settings[0])));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
