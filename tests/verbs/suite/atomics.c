/* Compare-and-swap and fetch-and-add on 64-bit words. IBA 9.4.5; man ibv_post_send. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"

static void compare_and_swap(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    uint64_t *word = (uint64_t *)(p.b.mem.p + 64), *result = (uint64_t *)(p.a.mem.p + 8);
    *word = 0x1122334455667788;
    struct op op = op_atomic(&p.a, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 8, &to, 64, 0x1122334455667788, 0xa1a2a3a4a5a6a7a8);
    op_post(&p.a, &op);
    struct ibv_wc wc = cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    REQUIRE_EQ(wc.opcode, IBV_WC_COMP_SWAP);
    REQUIRE(*result == 0x1122334455667788 && *word == 0xa1a2a3a4a5a6a7a8);
    op_post(&p.a, &op); /* no longer equal: it tells the value and changes nothing */
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    REQUIRE(*result == 0xa1a2a3a4a5a6a7a8 && *word == 0xa1a2a3a4a5a6a7a8);
    REQUIRE(word[-1] == 0 && word[1] == 0 && result[-1] == 0 && result[1] == 0);
    pair_close(&p);
}

static void fetch_and_add(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    uint64_t *word = (uint64_t *)(p.b.mem.p + 128), *result = (uint64_t *)p.a.mem.p, sum = ~0ull - 10;
    *word = sum;
    for (uint64_t i = 0; i < 8; i++) { /* it wraps on the way, and takes away as well */
        uint64_t add = i % 2 ? 7 : i % 3 ? ~0ull : 0x100000001;
        struct op op = op_atomic(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, &to, 128, add, 99);
        op_post(&p.a, &op);
        REQUIRE_EQ(cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
        REQUIRE_EQ(*result, sum);
        sum += add;
        REQUIRE_EQ(*word, sum);
    }
    REQUIRE(word[-1] == 0 && word[1] == 0);
    pair_close(&p);
}

/* IBA 11.4.2.1: the completion tells 8 bytes. */
static void length_is_eight(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    struct op op = op_atomic(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &to, 0, 1, 0);
    op_post(&p.a, &op);
    REQUIRE_EQ(cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS).byte_len, 8);
    pair_close(&p);
}

/* A list that has no room for the result is an error of the requester's, found before anything is done. IBA 11.6.2. */
static void short_result_refused(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    uint64_t *word = (uint64_t *)p.b.mem.p;
    *word = 5;
    struct op op = op_atomic(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &to, 0, 1, 0);
    op.sge[0].length = 4;
    if (op_try(&p.a, &op) == 0) {
        struct ibv_wc wc;
        cq_next(p.a.send_cq, &wc);
        REQUIRE_EQ(wc.wr_id, 1);
        REQUIRE(wc.status != IBV_WC_SUCCESS);
    }
    REQUIRE_EQ(*word, 5);
    pair_close(&p);
}

/* IBA 9.4.5: the target must be aligned to 8. The responder answers with an invalid request; a library may refuse it
 * earlier. */
static void unaligned_target_refused(void)
{
    for (size_t off = 1; off < 8; off += 3) {
        struct pair p;
        PAIR(&p, .type = IBV_QPT_RC);
        struct end_address to = end_address(&p.b);
        struct op op = op_atomic(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &to, off, 1, 0);
        if (op_try(&p.a, &op) == 0) {
            cq_expect(p.a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
            end_await_state(&p.a, IBV_QPS_ERR);
        }
        for (int i = 0; i < 24; i++)
            REQUIRE_EQ(p.b.mem.p[i], 0);
        pair_close(&p);
    }
}

/* Only reliable queue pairs have them. */
static void unreliable_refused(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_UC);
    struct end_address to = end_address(&p.b);
    struct ibv_wc wc;
    struct op op = op_atomic(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &to, 0, 1, 0);
    if (op_try(&p.a, &op) == 0) {
        cq_next(p.a.send_cq, &wc);
        REQUIRE(wc.status != IBV_WC_SUCCESS);
    }
    REQUIRE_EQ(p.b.mem.p[0], 0);
    pair_close(&p);
}

/* Two processes and two queue pairs each count in one word: no count is lost, and no value is given out twice. */
enum { COUNTS = 300, QPS = 2, PROCESSES = 2 };

static void counter(int fd, void *arg)
{
    struct device d;
    struct end e[QPS];
    struct end_address to = {0};
    (void)arg;
    device_open(&d);
    for (int q = 0; q < QPS; q++) {
        end_open(&e[q], &d, &(struct end_options){0});
        to = end_join(&e[q], fd);
    }
    uint64_t seen[QPS * COUNTS];
    for (int i = 0; i < COUNTS; i++) {
        for (int q = 0; q < QPS; q++) {
            struct op op = op_atomic(&e[q], IBV_WR_ATOMIC_FETCH_AND_ADD, (uint64_t)i, 0, &to, 0, 1, 0);
            op_post(&e[q], &op);
        }
        for (int q = 0; q < QPS; q++) {
            cq_expect(e[q].send_cq, (uint64_t)i, IBV_WC_SUCCESS);
            memcpy(&seen[i * QPS + q], e[q].mem.p, 8);
        }
    }
    tell(fd, seen, sizeof seen);
    for (int q = 0; q < QPS; q++)
        end_close(&e[q]);
    device_close(&d);
}

static void counted_by_many(void)
{
    struct peer peer[PROCESSES];
    struct device d;
    struct end e[PROCESSES * QPS];
    struct memory word;
    static bool seen[PROCESSES * QPS * COUNTS];
    for (int i = 0; i < PROCESSES; i++)
        peer[i] = peer_start(counter, NULL);
    device_open(&d);
    memory_make(&word, d.pd, 4096, ACCESS_ALL);
    for (int i = 0; i < PROCESSES * QPS; i++) {
        int fd = peer[i / QPS].fd;
        end_open(&e[i], &d, &(struct end_options){0});
        struct end_address mine = end_address(&e[i]), theirs;
        mine.addr = (uintptr_t)word.p;
        mine.rkey = word.mr->rkey;
        hear(fd, &theirs, sizeof theirs);
        end_connect(&e[i], &theirs);
        tell(fd, &mine, sizeof mine);
        meet(fd);
    }
    for (int i = 0; i < PROCESSES; i++) {
        uint64_t got[QPS * COUNTS];
        hear(peer[i].fd, got, sizeof got);
        for (int k = 0; k < QPS * COUNTS; k++) {
            REQUIRE_MSG(got[k] < PROCESSES * QPS * COUNTS && !seen[got[k]], "value %llu twice",
                        (unsigned long long)got[k]);
            seen[got[k]] = true;
        }
        peer_finish(&peer[i]);
    }
    uint64_t sum;
    memcpy(&sum, word.p, 8);
    REQUIRE_EQ(sum, PROCESSES * QPS * COUNTS);
    for (int i = 0; i < PROCESSES * QPS; i++)
        end_close(&e[i]);
    memory_free(&word);
    device_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(compare_and_swap),         CASE(fetch_and_add),      CASE(length_is_eight), CASE(short_result_refused),
    CASE(unaligned_target_refused), CASE(unreliable_refused), CASE(counted_by_many),
};
VERBS_MAIN("atomics", cases)
