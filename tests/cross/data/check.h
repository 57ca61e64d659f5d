/* As much of Check as the tests need that aarch64_long_test.sh builds: Debian has the library for another processor
 * only in that processor's architecture, which a machine need not have. Each test is a process of its own, in order. Of
 * a loop's turns the first CROSS_TURNS run, where the environment has this number. */
#ifndef CROSS_CHECK_H
#define CROSS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CK_ENV, CROSS_MOST = 64 };

typedef struct {
    struct {
        void (*run)(int i);
        const char *name;
        int from, to;
    } test[CROSS_MOST];
    int n, failed, seconds;
} TCase, Suite, SRunner;

static TCase cross_case;

#define START_TEST(name) static void name(int _i __attribute__((unused)))
#define END_TEST

#define tcase_add_loop_test(t, fn, first, end) cross_add(t, fn, #fn, first, end)
#define tcase_add_test(t, fn)                  cross_add(t, fn, #fn, 0, 1)

static inline void cross_add(TCase *t, void (*run)(int), const char *name, int from, int to)
{
    if (t->n == CROSS_MOST)
        _exit(3);
    t->test[t->n].run = run;
    t->test[t->n].name = name;
    t->test[t->n].from = from;
    t->test[t->n++].to = to;
}

static inline Suite *suite_create(const char *name)
{
    printf("%s\n", name);
    return &cross_case;
}

static inline TCase *tcase_create(const char *name)
{
    (void)name;
    return &cross_case;
}

static inline void tcase_set_timeout(TCase *t, int seconds)
{
    t->seconds = seconds;
}

static inline void suite_add_tcase(Suite *s, TCase *t)
{
    (void)s, (void)t;
}

static inline SRunner *srunner_create(Suite *s)
{
    return s;
}

static inline void cross_run(TCase *t, int k, int i)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm((unsigned)t->seconds);
        t->test[k].run(i);
        fflush(NULL);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        printf("FAILED: %s, turn %d: status %x\n", t->test[k].name, i, (unsigned)status);
        t->failed++;
    }
}

static inline void srunner_run_all(SRunner *t, int how)
{
    const char *turns = getenv("CROSS_TURNS");
    int n = 0, most = turns ? atoi(turns) : 1 << 30;
    (void)how;
    for (int k = 0; k < t->n; k++)
        for (int i = t->test[k].from; i < t->test[k].to && i - t->test[k].from < most; i++, n++)
            cross_run(t, k, i);
    printf("%d tests, %d failed\n", n, t->failed);
}

static inline int srunner_ntests_failed(SRunner *t)
{
    return t->failed;
}

static inline void srunner_free(SRunner *t)
{
    (void)t;
}

#endif
