/* strata-memscale's model takes limits, and the terms that a part may have, from a configuration. */
#include <check.h>
#include "support/run_suite.h"
#include "tools/strata-memscale/model_terms.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

const char *const pattern_names[N_PATTERNS] = {"hello", "pairwise", "alltoall"};
static const struct transport softhca = {"softhca", LIB_STRATA, "openib,self", true};

const struct transport *transport_named(const char *name)
{
    return strcmp(name, softhca.name) == 0 ? &softhca : NULL;
}

static struct model_limits limits_of(const char *pattern, const char *queues)
{
    struct model_limits l;
    json_t *set = json_object(),
           *one = json_pack("{s:s, s:s, s:o}", "pattern", pattern, "transport", "softhca", "parameters", set);

    if (queues)
        json_object_set_new(set, "btl_openib_receive_queues", json_string(queues));
    model_limits_of(&l, one);
    json_decref(one);
    return l;
}

START_TEST(shared_queues)
{
    static const struct {
        const char *text;
        double per_peer, entries;
    } rows[] = {{NULL, 66, 8192},
                {"S,8448,16,4,32:S,33024,16,1,6", 34, 16},
                {"S,8k,64,16,32:S,32k,16,1,6", 34, 64},
                {"S,8K,4k,16,1k:S,32k,16,1,6", 1026, 4096},
                {"S,8448,16384,4,4096:S,33024,1024,1,512", 4098, 8192},
                {"P,8448,72,1,64:P,33024,7,1,6", 0, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct model_limits l = limits_of("alltoall", rows[i].text);
        ck_assert_double_eq(l.per_peer, rows[i].per_peer);
        ck_assert_double_eq(l.entries, rows[i].entries);
    }
}
END_TEST

/* Where each rank has the same number of peers for all N, terms of peers are the base under another name. */
START_TEST(terms_of_peers)
{
    const unsigned peers = 1u << MODEL_PEER | 1u << MODEL_LOG | 1u << MODEL_RING;

    for (int part = 0; part < N_PARTS; part++) {
        for (int pattern = HELLO; pattern <= PAIRWISE; pattern++) {
            const struct model_limits l = limits_of(pattern_names[pattern], NULL);
            ck_assert_uint_eq(model_allowed(&l, (enum model_part)part) & peers, 0);
        }
        const struct model_limits l = limits_of("alltoall", NULL);
        ck_assert_uint_ne(model_allowed(&l, (enum model_part)part) & 1u << MODEL_PEER, 0);
    }
    const struct model_limits l = limits_of("alltoall", NULL);
    ck_assert_uint_eq(model_allowed(&l, PART_PRIVATE) & peers, peers);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memscale_terms");
    TCase *tc = tcase_create("terms");

    tcase_add_test(tc, shared_queues);
    tcase_add_test(tc, terms_of_peers);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
