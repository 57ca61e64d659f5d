/* Components of frameworks that a job may never ask for: loaded when they are first asked for, or when a setting names
 * them, with the same parameters and the same errors as if they had been loaded at the start. */
#include "config.h"
#include "framework/mca/internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/rcache.h>
#include "support/run_suite.h"

static int create_with(const strata_setting_t *setting, struct st_mca **out, char *err, size_t err_size)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    config.settings = setting;
    config.n_settings = setting ? 1 : 0;
    return st_mca_create(&config, ST_MCA_NEEDED, out, err, err_size);
}

static struct st_mca *create(const strata_setting_t *setting)
{
    struct st_mca *mca = NULL;
    char err[700] = "";
    ck_assert_msg(!create_with(setting, &mca, err, sizeof(err)), "%s", err);
    return mca;
}

static size_t n_of(const struct st_mca *mca, const char *framework)
{
    size_t n = 0;
    for (size_t i = 0; i < mca->n_items; i++)
        n += !strcmp(mca->items[i].plugin->framework, framework);
    return n;
}

static void count_param(void *arg, const struct st_info_param *p)
{
    const char *wanted = "rcache_";
    *(size_t *)arg += !strncmp(p->name, wanted, strlen(wanted));
}

static size_t n_params(const struct st_mca *mca)
{
    size_t n = 0;
    st_info_params(mca, count_param, &n);
    return n;
}

static size_t n_candidates(struct st_mca *mca)
{
    struct st_candidate *list = NULL;
    size_t n = 0;
    ck_assert_int_eq(st_mca_candidates(mca, "rcache", sizeof(struct st_rcache_component_ops), &list, &n), STRATA_OK);
    for (size_t i = 0; i < n; i++)
        ck_assert_ptr_nonnull(list[i].config);
    free(list);
    return n;
}

START_TEST(loaded_when_asked_for)
{
    struct st_mca *all = NULL, *mca = create(NULL);
    char err[700];
    ck_assert_int_eq(st_mca_create(NULL, ST_MCA_ALL, &all, err, sizeof(err)), STRATA_OK);
    ck_assert(!st_mca_waits(all, "rcache"));
    ck_assert_uint_ge(n_of(all, "rcache"), 1);
    ck_assert(st_mca_waits(mca, "rcache") && st_mca_waits(mca, "memory") && st_mca_waits(mca, "mpool"));
    ck_assert(st_mca_waits(mca, "coll"));
    ck_assert(!st_mca_waits(mca, "btl") && !st_mca_waits(mca, "nosuch"));
    ck_assert_uint_eq(n_of(mca, "rcache"), 0);
    ck_assert_uint_eq(n_params(mca), 0);
    ck_assert_uint_eq(n_candidates(mca), n_candidates(all));
    ck_assert(!st_mca_waits(mca, "rcache") && st_mca_waits(mca, "memory"));
    ck_assert_uint_eq(n_of(mca, "rcache"), n_of(all, "rcache"));
    ck_assert_uint_eq(n_params(mca), n_params(all));
    ck_assert_uint_eq(n_candidates(mca), n_candidates(all));
    ck_assert_int_eq(st_mca_load(mca, NULL, err, sizeof(err)), STRATA_OK);
    ck_assert_uint_eq(mca->n_items, all->n_items);
    ck_assert_uint_eq(mca->n_vars, all->n_vars);
    st_mca_destroy(mca);
    st_mca_destroy(all);
}
END_TEST

START_TEST(loaded_when_named)
{
    static const strata_setting_t list = {"rcache", "^nothing_but_a_name"}, priority = {"rcache_tree_priority", "-1"};
    struct st_mca *mca = NULL;
    char err[700] = "";
    ck_assert_int_eq(create_with(&list, &mca, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "there is no rcache component"), "%s", err);
    mca = create(&priority);
    ck_assert(!st_mca_waits(mca, "rcache") && st_mca_waits(mca, "mpool"));
    size_t one_less = n_candidates(mca);
    st_mca_destroy(mca);
    mca = create(NULL);
    ck_assert_uint_eq(n_candidates(mca), one_less + 1);
    st_mca_destroy(mca);
}
END_TEST

/* What waits takes no place from the others, however many there are. */
START_TEST(none_is_lost)
{
    static const strata_setting_t named[] = {{"rcache", ""}, {"memory", ""}};
    strata_config_t config = STRATA_CONFIG_INIT;
    struct st_mca *all = NULL, *mca = NULL;
    char err[700];
    config.settings = named;
    config.n_settings = 2;
    ck_assert_int_eq(st_mca_create(NULL, ST_MCA_ALL, &all, err, sizeof(err)), STRATA_OK);
    ck_assert_int_eq(st_mca_create(&config, ST_MCA_NEEDED, &mca, err, sizeof(err)), STRATA_OK);
    ck_assert(st_mca_waits(mca, "mpool"));
    ck_assert_uint_eq(mca->n_items + n_of(all, "mpool") + n_of(all, "coll"), all->n_items);
    st_mca_destroy(mca);
    st_mca_destroy(all);
}
END_TEST

/* The names that may be meant are those of all components. */
START_TEST(misspelt)
{
    static const strata_setting_t cases[] = {{"rcache_tree_priorty", "1"}, {"rcach_tree_priority", "1"}};
    for (size_t i = 0; i < 2; i++) {
        struct st_mca *mca = NULL;
        char err[700] = "";
        ck_assert_int_eq(create_with(&cases[i], &mca, err, sizeof(err)), STRATA_ERR_PARAM);
        ck_assert_msg(strstr(err, "did you mean \"rcache_tree_priority\""), "%s", err);
    }
}
END_TEST

static void find_tcp(void *arg, const struct st_info_component *c)
{
    struct st_info_component *found = arg;
    if (!strcmp(c->framework, "btl") && !strcmp(c->name, "tcp"))
        *found = *c;
}

static struct st_info_component tcp_of(const struct st_mca *mca)
{
    struct st_info_component found = {0};
    st_info_components(mca, find_tcp, &found);
    ck_assert_ptr_nonnull(found.name);
    return found;
}

/* A component that the list excludes is known by name, with the reason, and is not loaded; unless a parameter of it is
 * set, which must be checked. */
START_TEST(excluded_is_not_loaded)
{
    static const strata_setting_t lists[] = {{"btl", "self,sm"}, {"btl", "^tcp"}};
    for (size_t i = 0; i < 2; i++) {
        char err[700];
        struct st_mca *mca = create(&lists[i]), *all = NULL;
        struct st_info_component tcp = tcp_of(mca);
#ifndef ST_STATIC_COMPONENTS /* else it is there as soon as the library is */
        ck_assert_str_eq(tcp.version, "");
#endif
        ck_assert_int_eq(tcp.fate, ST_INFO_EXCLUDED);
        ck_assert_ptr_nonnull(strstr(tcp.reason, "does not admit it"));
        ck_assert_int_eq(st_mca_load(mca, NULL, err, sizeof(err)), STRATA_OK);
        tcp = tcp_of(mca);
        ck_assert_str_ne(tcp.version, "");
        ck_assert_int_eq(tcp.fate, ST_INFO_EXCLUDED);
        strata_config_t config = {.size = sizeof(config), .settings = &lists[i], .n_settings = 1};
        ck_assert_int_eq(st_mca_create(&config, ST_MCA_ALL, &all, err, sizeof(err)), STRATA_OK);
        ck_assert_uint_eq(mca->n_items, all->n_items);
        ck_assert_uint_eq(mca->n_vars, all->n_vars);
        st_mca_destroy(all);
        st_mca_destroy(mca);
    }
}
END_TEST

START_TEST(excluded_is_checked)
{
    static const strata_setting_t wrong[] = {{"btl", "self,sm"}, {"btl_tcp_no_such", "1"}},
                                  right[] = {{"btl", "self,sm"}, {"btl_tcp_priority", "1"}},
                                  misspelt_name[] = {{"btl", "self,sm"}, {"btl_tpc_priority", "1"}},
                                  absent[] = {{"btl", "^tpc"}};
    strata_config_t config = {.size = sizeof(config), .settings = right, .n_settings = 2};
    struct st_mca *mca = NULL;
    char err[700] = "";
    ck_assert_msg(!st_mca_create(&config, ST_MCA_NEEDED, &mca, err, sizeof(err)), "%s", err);
    ck_assert_str_ne(tcp_of(mca).version, "");
    st_mca_destroy(mca);
    config.settings = wrong;
    ck_assert_int_eq(st_mca_create(&config, ST_MCA_NEEDED, &mca, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "btl_tcp_no_such"), "%s", err);
    config.settings = misspelt_name;
    ck_assert_int_eq(st_mca_create(&config, ST_MCA_NEEDED, &mca, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "did you mean \"btl_tcp_priority\""), "%s", err);
    ck_assert_int_eq(create_with(absent, &mca, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "did you mean \"tcp\""), "%s", err);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("waiting");
    TCase *t = tcase_create("waiting");
    tcase_add_test(t, loaded_when_asked_for);
    tcase_add_test(t, loaded_when_named);
    tcase_add_test(t, none_is_lost);
    tcase_add_test(t, misspelt);
    tcase_add_test(t, excluded_is_not_loaded);
    tcase_add_test(t, excluded_is_checked);
    suite_add_tcase(s, t);
    return run_suite(s);
}
