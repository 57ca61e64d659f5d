/* Precedence of the sources, parameter files, and what is remembered about where a value came from. */
#define _GNU_SOURCE
#include "framework/mca/internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/run_suite.h"

static char folder[] = "/tmp/strata-sources-XXXXXX";
static char user_file[128], other_file[128];

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void make_home(void)
{
    char path[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/.strata", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(user_file, sizeof(user_file), "%s/.strata/mca-params.conf", folder);
    snprintf(other_file, sizeof(other_file), "%s/other.conf", folder);
    setenv("HOME", folder, 1);
    clearenv();
    setenv("HOME", folder, 1);
}

static void drop_home(void)
{
    char path[128];
    unlink(user_file);
    unlink(other_file);
    snprintf(path, sizeof(path), "%s/.strata", folder);
    rmdir(path);
    rmdir(folder);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

static struct st_settings collect(const strata_config_t *config)
{
    struct st_settings set = {0};
    char err[600] = "";
    ck_assert_msg(!st_settings_collect(&set, config, err, sizeof(err)), "%s", err);
    return set;
}

START_TEST(precedence)
{
    /* Each source sets its own name and all names of weaker ones: the strongest must win every time. */
    write_text(user_file, "v1 = file\nv2 = file\nv3 = file\nv4 = file\n");
    setenv("STRATA_MCA_v2", "environment", 1);
    setenv("STRATA_MCA_v3", "environment", 1);
    setenv("STRATA_MCA_v4", "environment", 1);
    const strata_setting_t line[] = {{"v3", "early"}, {"v3", "line"}, {"v4", "line"}};
    const strata_setting_t api[] = {{"v4", "api"}};
    strata_config_t config = STRATA_CONFIG_INIT;
    config.command_line = line;
    config.n_command_line = 3;
    config.settings = api;
    config.n_settings = 1;
    struct st_settings set = collect(&config);
    ck_assert_ptr_null(st_settings_find(&set, "v0"));
    const char *const want[] = {"file", "environment", "line", "api"};
    const enum st_param_source source[] = {ST_SOURCE_FILE, ST_SOURCE_ENVIRONMENT, ST_SOURCE_COMMAND_LINE,
                                           ST_SOURCE_API};
    char where[200];
    snprintf(where, sizeof(where), "%s:1", user_file);
    const char *const origin[] = {where, "environment STRATA_MCA_v2", "the command line", "the program's own settings"};
    for (size_t i = 0; i < 4; i++) {
        const struct st_setting *s = st_settings_find(&set, (const char *const[]){"v1", "v2", "v3", "v4"}[i]);
        ck_assert_ptr_nonnull(s);
        ck_assert_str_eq(s->value, want[i]);
        ck_assert_int_eq(s->source, source[i]);
        ck_assert_str_eq(s->where, origin[i]);
    }
    st_settings_free(&set);
}
END_TEST

START_TEST(launcher_command_line)
{
    setenv("STRATA_MCA_a", "1", 1);
    setenv("STRATA_MCA_aa", "2", 1);
    setenv("STRATA_MCA_b", "3", 1);
    setenv("STRATA_COMMAND_LINE", "aa,b", 1);
    struct st_settings set = collect(NULL);
    ck_assert_int_eq(st_settings_find(&set, "a")->source, ST_SOURCE_ENVIRONMENT);
    ck_assert_int_eq(st_settings_find(&set, "aa")->source, ST_SOURCE_COMMAND_LINE);
    ck_assert_int_eq(st_settings_find(&set, "b")->source, ST_SOURCE_COMMAND_LINE);
    st_settings_free(&set);
    /* What the process was given itself beats what its launcher was given. */
    const strata_setting_t line[] = {{"b", "4"}};
    strata_config_t config = STRATA_CONFIG_INIT;
    config.command_line = line;
    config.n_command_line = 1;
    set = collect(&config);
    ck_assert_str_eq(st_settings_find(&set, "b")->value, "4");
    st_settings_free(&set);
}
END_TEST

START_TEST(file_syntax)
{
    write_text(user_file, "# comment\n"
                          "\n"
                          "   \t \n"
                          "btl=self,sm\r\n"
                          "  spaced   =  a b  # why\n"
                          "hash = a#b\n"
                          "empty =\n"
                          "twice = 1\n"
                          "twice = 2\n"
                          "equals = a=b\n"
                          "last = no newline");
    struct st_settings set = collect(NULL);
    ck_assert_str_eq(st_settings_find(&set, "btl")->value, "self,sm");
    ck_assert_str_eq(st_settings_find(&set, "spaced")->value, "a b");
    ck_assert_str_eq(st_settings_find(&set, "hash")->value, "a#b");
    ck_assert_str_eq(st_settings_find(&set, "empty")->value, "");
    ck_assert_str_eq(st_settings_find(&set, "twice")->value, "2");
    ck_assert_str_eq(st_settings_find(&set, "equals")->value, "a=b");
    ck_assert_str_eq(st_settings_find(&set, "last")->value, "no newline");
    char where[200];
    snprintf(where, sizeof(where), "%s:9", user_file);
    ck_assert_str_eq(st_settings_find(&set, "twice")->where, where);
    st_settings_free(&set);
}
END_TEST

START_TEST(malformed_files)
{
    static const struct {
        const char *text;
        size_t n;
        int line;
        const char *reason;
    } bad[] = {
        {"a = 1\nbtl self\n", 15, 2, "no \"=\" in the line; write: name = value"},
        {"= 1\n", 4, 1, "nothing before \"=\"; write: name = value"},
        {"\n\nbtl sm = 1\n", 13, 3, "a parameter's name is made of letters, digits and _"},
        {"a = 1\nb = \0002\n", 13, 2, "the line contains a zero byte"},
        {"\x7f\x45\x4c\x46", 4, 1, "no \"=\" in the line; write: name = value"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct st_settings set = {0};
        char err[600] = "", want[600];
        write_file(user_file, bad[i].text, bad[i].n);
        ck_assert_int_eq(st_settings_collect(&set, NULL, err, sizeof(err)), STRATA_ERR_PARAM);
        snprintf(want, sizeof(want), "%s:%d: %s", user_file, bad[i].line, bad[i].reason);
        ck_assert_str_eq(err, want);
        st_settings_free(&set);
    }
}
END_TEST

START_TEST(which_files)
{
    char list[400], err[600] = "";
    write_text(user_file, "x = user\ny = user\n");
    write_text(other_file, "x = other\n");
    setenv("STRATA_MCA_mca_param_files", "none", 1);
    struct st_settings set = collect(NULL);
    ck_assert_ptr_null(st_settings_find(&set, "x"));
    st_settings_free(&set);
    /* The earlier file has precedence. */
    snprintf(list, sizeof(list), "%s:%s", other_file, user_file);
    setenv("STRATA_MCA_mca_param_files", list, 1);
    set = collect(NULL);
    ck_assert_str_eq(st_settings_find(&set, "x")->value, "other");
    ck_assert_str_eq(st_settings_find(&set, "y")->value, "user");
    st_settings_free(&set);
    /* A file that was named must exist; one by default need not. */
    snprintf(list, sizeof(list), "%s/absent.conf", folder);
    setenv("STRATA_MCA_mca_param_files", list, 1);
    ck_assert_int_eq(st_settings_collect(&set, NULL, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_ptr_nonnull(strstr(err, "absent.conf: cannot be opened: No such file or directory"));
    st_settings_free(&set);
    /* A folder is not a file. */
    setenv("STRATA_MCA_mca_param_files", folder, 1);
    ck_assert_int_eq(st_settings_collect(&set, NULL, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_ptr_nonnull(strstr(err, "cannot be read: Is a directory"));
    st_settings_free(&set);
    unsetenv("STRATA_MCA_mca_param_files");
    /* The list of files cannot come from a file. */
    write_text(user_file, "mca_param_files = none\n");
    ck_assert_int_eq(st_settings_collect(&set, NULL, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_ptr_nonnull(strstr(err, "cannot be set in a parameter file"));
    st_settings_free(&set);
}
END_TEST

START_TEST(bad_tables)
{
    struct st_settings set = {0};
    char err[600];
    const strata_setting_t no_name = {NULL, "1"}, no_value = {"x", NULL}, empty_name = {"", "1"};
    const strata_setting_t *const bad[] = {&no_name, &no_value, &empty_name};
    for (size_t i = 0; i < 3; i++) {
        strata_config_t config = STRATA_CONFIG_INIT;
        config.settings = bad[i];
        config.n_settings = 1;
        ck_assert_int_eq(st_settings_collect(&set, &config, err, sizeof(err)), STRATA_ERR_PARAM);
        st_settings_free(&set);
    }
    strata_config_t config = STRATA_CONFIG_INIT;
    config.n_settings = 1;
    ck_assert_int_eq(st_settings_collect(&set, &config, err, sizeof(err)), STRATA_ERR_ARG);
    st_settings_free(&set);
}
END_TEST

START_TEST(odd_environment)
{
    struct st_settings set = {0};
    char err[600], name[400];
    memset(name, 'x', sizeof(name));
    memcpy(name, "STRATA_MCA_", 11);
    name[sizeof(name) - 1] = '\0';
    setenv(name, "1", 1);
    ck_assert_int_eq(st_settings_collect(&set, NULL, err, sizeof(err)), STRATA_ERR_PARAM);
    st_settings_free(&set);
    unsetenv(name);
    setenv("STRATA_MCA_", "1", 1);
    ck_assert_int_eq(st_settings_collect(&set, NULL, err, sizeof(err)), STRATA_ERR_PARAM);
    st_settings_free(&set);
}
END_TEST

/* Whole way: values with their sources as tools see them. */
struct seen {
    const char *name;
    struct st_info_param p;
};

static void look(void *arg, const struct st_info_param *p)
{
    struct seen *s = arg;
    if (!strcmp(p->name, s->name))
        s->p = *p;
}

static int create(struct st_mca **mca, char *err, size_t n)
{
    *mca = NULL;
    return st_mca_create(NULL, ST_MCA_ALL, mca, err, n);
}

START_TEST(through_the_component_system)
{
    struct st_mca *mca;
    char err[700], want[700];
    setenv("STRATA_MCA_mca_component_path", "/nonexistent", 1);
    write_text(user_file, "# quiet\nmca_base_verbose = 0\n");
    ck_assert_msg(!create(&mca, err, sizeof(err)), "%s", err);
    ck_assert_int_eq(st_mca_base_config(mca)->verbose, 0);
    struct seen s = {.name = "mca_base_verbose"};
    st_info_params(mca, look, &s);
    snprintf(want, sizeof(want), "%s:2", user_file);
    ck_assert_str_eq(s.p.where, want);
    ck_assert_str_eq(s.p.source, "file");
    ck_assert_str_eq(s.p.value, "0");
    ck_assert_str_eq(s.p.framework, "mca");
    ck_assert_str_eq(s.p.component, "base");
    st_mca_destroy(mca);

    write_text(user_file, "mca_base_verbose = loud\n");
    ck_assert_int_eq(create(&mca, err, sizeof(err)), STRATA_ERR_PARAM);
    snprintf(want, sizeof(want), "parameter mca_base_verbose = \"loud\" (%s:1): not a valid int; allowed: 0 .. 3",
             user_file);
    ck_assert_str_eq(err, want);
    unlink(user_file);

    setenv("STRATA_MCA_mca_base_verbse", "1", 1);
    ck_assert_int_eq(create(&mca, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_str_eq(err, "there is no parameter \"mca_base_verbse\" (environment STRATA_MCA_mca_base_verbse); did you "
                          "mean \"mca_base_verbose\"?");
    ck_assert_ptr_null(mca);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sources");
    TCase *t = tcase_create("sources");
    tcase_add_checked_fixture(t, make_home, drop_home);
    tcase_add_test(t, precedence);
    tcase_add_test(t, launcher_command_line);
    tcase_add_test(t, file_syntax);
    tcase_add_test(t, malformed_files);
    tcase_add_test(t, which_files);
    tcase_add_test(t, bad_tables);
    tcase_add_test(t, odd_environment);
    tcase_add_test(t, through_the_component_system);
    suite_add_tcase(s, t);
    return run_suite(s);
}
