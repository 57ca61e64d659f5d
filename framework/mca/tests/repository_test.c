/* Every component that this build has: it loads, and each of its parameters is complete. Then the repository itself:
 * several contexts, several threads, components that are not what they seem. */
#define _GNU_SOURCE
#include "framework/mca/internal.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/run_suite.h"

static struct st_mca *create(void)
{
    struct st_mca *mca = NULL;
    char err[700] = "";
    ck_assert_msg(!st_mca_create(NULL, ST_MCA_ALL, &mca, err, sizeof(err)), "%s", err);
    return mca;
}

static void check_component(void *arg, const struct st_info_component *c)
{
    ck_assert_msg(c->fate != ST_INFO_NOT_LOADED, "%s_%s (%s): %s", c->framework, c->name, c->path, c->reason);
    ck_assert_msg(*c->summary && *c->version, "%s_%s lacks a summary or a version", c->framework, c->name);
    (*(size_t *)arg)++;
}

static void check_param(void *arg, const struct st_info_param *p)
{
    size_t n = strlen(p->help);
    ck_assert_msg(n > 8 && p->help[n - 1] == '.', "%s: the help text is not a sentence: \"%s\"", p->name, p->help);
    (*(size_t *)arg)++;
}

static void check_counter(void *arg, const struct st_info_counter *c)
{
    size_t n = strlen(c->help);
    ck_assert_msg(n > 8 && c->help[n - 1] == '.' && *c->unit, "%s_%s_%s: the help text is not a sentence: \"%s\"",
                  c->framework, c->component, c->name, c->help);
    ck_assert_msg(strspn(c->name, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(c->name), "a counter \"%s\"",
                  c->name);
    (*(size_t *)arg)++;
}

START_TEST(all_components)
{
    struct st_mca *mca = create();
    size_t components = 0, params = 0, counters = 0;
    st_info_components(mca, check_component, &components);
    st_info_params(mca, check_param, &params);
    st_info_counters(mca, check_counter, &counters);
    ck_assert_uint_gt(counters, 20);
    ck_assert_uint_gt(components, 0);
    ck_assert_uint_gt(params, components); /* at least a priority each */
    char why[700];
    for (size_t i = 0; i < st_base_n_params; i++)
        ck_assert_msg(!st_param_check_row(&st_base_params[i], sizeof(struct st_base_config), why, sizeof(why)), "%s",
                      why);
    for (size_t i = 0; i < st_n_mca_params; i++)
        ck_assert_msg(!st_param_check_row(&st_mca_params[i], sizeof(struct st_mca_config), why, sizeof(why)), "%s",
                      why);
    for (size_t i = 0; i < mca->n_items; i++) {
        const struct st_component *c = mca->items[i].plugin->component;
        for (size_t j = 0; j < c->n_params; j++)
            ck_assert_msg(!st_param_check_row(&c->params[j], c->config_size, why, sizeof(why)), "%s_%s: %s",
                          c->framework, c->name, why);
        for (size_t j = 0; j < c->n_help; j++)
            ck_assert_msg(c->help[j].topic && c->help[j].text && *c->help[j].text, "%s_%s: help text %zu is empty",
                          c->framework, c->name, j);
    }
    st_mca_destroy(mca);
}
END_TEST

START_TEST(candidates_by_priority)
{
    struct st_mca *mca = create();
    struct st_candidate *list;
    size_t n;
    const struct st_component *any = mca->items[0].plugin->component;
    ck_assert_int_eq(st_mca_candidates(mca, any->framework, any->ops_size, &list, &n), STRATA_OK);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(list[i].config);
        ck_assert(!list[i].by_name);
        ck_assert_int_ge(list[i].priority, 0);
        ck_assert(i == 0 || list[i - 1].priority >= list[i].priority);
    }
    free(list);
    /* Another ops struct: nobody fits, and the reason is kept. */
    ck_assert_int_eq(st_mca_candidates(mca, any->framework, any->ops_size + 8, &list, &n), STRATA_OK);
    ck_assert_uint_eq(n, 0);
    free(list);
    ck_assert_int_eq(st_mca_candidates(mca, "nosuch", 8, &list, &n), STRATA_OK);
    ck_assert_uint_eq(n, 0);
    free(list);
    st_mca_destroy(mca);
}
END_TEST

START_TEST(fates)
{
    struct st_mca *mca = create();
    const struct st_component *c = mca->items[0].plugin->component;
    ck_assert_str_eq(st_mca_reject_reason(mca, c), "");
    st_mca_fate(mca, c, ST_FATE_REJECTED, "no\nsuch device");
    ck_assert_str_eq(st_mca_reject_reason(mca, c), "no such device"); /* one line */
    st_mca_fate(mca, c, ST_FATE_UNUSED, NULL);
    ck_assert_str_eq(st_mca_reject_reason(mca, c), "no such device");
    ck_assert_int_eq(mca->items[0].fate, ST_INFO_UNUSED);
    st_mca_fate(mca, NULL, ST_FATE_CHOSEN, NULL);
    struct st_component stranger = *c;
    st_mca_fate(mca, &stranger, ST_FATE_CHOSEN, NULL);
    ck_assert_str_eq(st_mca_reject_reason(mca, &stranger), "");
    for (int f = ST_INFO_LOADED; f <= ST_INFO_REJECTED; f++)
        ck_assert_str_ne(st_info_fate_text((enum st_info_fate)f), "?");
    st_mca_destroy(mca);
}
END_TEST

START_TEST(one_component_many_contexts)
{
    struct st_mca *a = create(), *b = create();
    ck_assert_uint_eq(a->n_items, b->n_items);
    for (size_t i = 0; i < a->n_items; i++)
        ck_assert_ptr_eq(a->items[i].plugin->component, b->items[i].plugin->component);
    const struct st_component *c = a->items[0].plugin->component;
    st_mca_fate(a, c, ST_FATE_REJECTED, "in a");
    ck_assert_str_eq(st_mca_reject_reason(b, c), "");
    st_mca_destroy(a);
    /* The code outlives the first context, and the last. */
    ck_assert_uint_eq(c->magic, ST_COMPONENT_MAGIC);
    st_mca_destroy(b);
    ck_assert_uint_eq(c->magic, ST_COMPONENT_MAGIC);
    a = create();
    ck_assert_ptr_eq(a->items[0].plugin->component, c);
    st_mca_destroy(a);
}
END_TEST

static void *come_and_go(void *arg)
{
    for (int i = 0; i < 20; i++) {
        struct st_mca *mca = NULL;
        char err[700];
        if (st_mca_create(NULL, ST_MCA_ALL, &mca, err, sizeof(err)))
            return arg;
        st_mca_destroy(mca);
    }
    return NULL;
}

START_TEST(threads)
{
    pthread_t t[4];
    int marker;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, come_and_go, &marker), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(t[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

START_TEST(component_checks)
{
    struct st_mca *mca = create();
    const struct st_component good = *mca->items[0].plugin->component;
    const char *fw = good.framework, *nm = good.name;
    static const struct st_param
        twice[] = {{.name = "x", .type = ST_PARAM_BOOL, .dflt = "0", .help = "Help.", .level = 1},
                   {.name = "x", .type = ST_PARAM_BOOL, .dflt = "0", .help = "Help.", .level = 1}},
        reserved[] = {{.name = "priority", .type = ST_PARAM_BOOL, .dflt = "0", .help = "H.", .level = 1}};
    char why[700];
    ck_assert_int_eq(st_component_check(&good, fw, nm, why, sizeof(why)), STRATA_OK);
    enum { KINDS = 14 };
    static const char *const says[KINDS] = {"magic",         "component struct of 16 bytes",
                                            "ABI version",   "calls itself",
                                            "calls itself",  "summary",
                                            "no ops",        "no table",
                                            "appears twice", "added by the core",
                                            "no table",      "lacks its name, unit or help",
                                            "appears twice", "more than 64"};
    static const struct st_counter mute[] = {{"x", "times", STRATA_COUNT, ""}},
                                   two[] = {{"x", "times", STRATA_COUNT, "Times."}, {"x", "us", STRATA_PEAK, "Time."}};
    for (int i = 0; i < KINDS; i++) {
        struct st_component bad = good;
        if (i == 0)
            bad.magic = 1, bad.struct_size = 0; /* the magic is looked at first */
        if (i == 1)
            bad.struct_size = 16, bad.abi_version = 99; /* then the size */
        if (i == 2)
            bad.abi_version = 99, bad.name = NULL;
        if (i == 3)
            bad.name = "other";
        if (i == 4)
            bad.framework = NULL;
        if (i == 5)
            bad.summary = NULL;
        if (i == 6)
            bad.ops = NULL;
        if (i == 7)
            bad.params = NULL, bad.n_params = 3;
        if (i == 10)
            bad.counters = NULL, bad.n_counters = 1;
        if (i == 11)
            bad.counters = mute, bad.n_counters = 1;
        if (i == 12)
            bad.counters = two, bad.n_counters = 2;
        if (i == 13)
            bad.counters = two, bad.n_counters = ST_COUNTERS_MAX + 1;
        if (i == 8 || i == 9)
            bad.params = i == 8 ? twice : reserved, bad.n_params = i == 8 ? 2 : 1, bad.config_size = 1;
        ck_assert_int_eq(st_component_check(&bad, fw, nm, why, sizeof(why)), STRATA_ERR_ABI);
        ck_assert_msg(strstr(why, says[i]), "%d: %s", i, why);
    }
    st_mca_destroy(mca);
}
END_TEST

/* Our own program is an ELF file: cut short anywhere, it must be found out. */
START_TEST(cut_short)
{
    char path[] = "/tmp/strata-elf-XXXXXX", why[300];
    int in = open("/proc/self/exe", O_RDONLY), out = mkstemp(path);
    ck_assert_int_ge(in, 0);
    ck_assert_int_ge(out, 0);
    off_t size = lseek(in, 0, SEEK_END);
    char *bytes = malloc((size_t)size);
    ck_assert_int_eq(pread(in, bytes, (size_t)size, 0), size);
    ck_assert_int_eq(pwrite(out, bytes, (size_t)size, 0), size);
    int whole = st_elf_check(path, why, sizeof(why)); /* passes when linked as a position-independent program */
    ck_assert_msg(!whole || strstr(why, "ELF type"), "%s", why);
    off_t step = size / 64;
    for (off_t n = size - 1; n >= 0; n -= n > 200 ? step : 1) {
        ck_assert_int_eq(ftruncate(out, n), 0);
        ck_assert_msg(st_elf_check(path, why, sizeof(why)) != STRATA_OK, "%ld of %ld bytes", (long)n, (long)size);
    }
    free(bytes);
    close(in);
    close(out);
    unlink(path);
    ck_assert_int_ne(st_elf_check(path, why, sizeof(why)), STRATA_OK);
    ck_assert_int_ne(st_elf_check("/tmp", why, sizeof(why)), STRATA_OK);
    ck_assert_int_ne(st_elf_check("/dev/null", why, sizeof(why)), STRATA_OK);
    ck_assert_int_ne(st_elf_check("/etc/passwd", why, sizeof(why)), STRATA_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("repository");
    TCase *t = tcase_create("repository");
    tcase_add_test(t, all_components);
    tcase_add_test(t, candidates_by_priority);
    tcase_add_test(t, fates);
    tcase_add_test(t, one_component_many_contexts);
    tcase_add_test(t, threads);
    tcase_add_test(t, component_checks);
    tcase_add_test(t, cut_short);
    suite_add_tcase(s, t);
    return run_suite(s);
}
