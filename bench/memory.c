/* What the hooks cost a program that allocates and frees: threads do so with sizes that malloc serves from its arenas
 * and sizes that it maps, once in a process with the hooks and once in one without. Printed: nanoseconds for one pair.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/rcache.h>
#include <time.h>

enum { HELD = 256 };

struct worker {
    pthread_t thread;
    uint64_t seed, pairs, large; /* one in `large` is mapped */
};

static uint64_t next(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return *s >> 33;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    void *held[HELD] = {NULL};
    for (uint64_t i = 0; i < w->pairs; i++) {
        uint64_t at = next(&w->seed) % HELD, r = next(&w->seed);
        free(held[at]);
        size_t n = r % w->large ? 16 + r % 4096 : (192u << 10) + r % (1u << 20);
        char *p = malloc(n);
        if (!p)
            abort();
        p[0] = p[n - 1] = 1;
        held[at] = p;
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    return NULL;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* memory on|off THREADS PAIRS LARGE */
int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
    uint64_t pairs = strtoull(argv[3], NULL, 10), large = strtoull(argv[4], NULL, 10);
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_t *s;
    if (threads == 0 || threads > 64 || large == 0 || strata_init(&config, &s) != STRATA_OK)
        return 1;
    if (!strcmp(argv[1], "on")) {
        struct st_rcache *cache = st_rcache(s);
        if (!cache || !cache->memory) {
            fprintf(stderr, "there is no source of memory events here\n");
            return 1;
        }
    }
    struct worker w[64];
    double from = seconds();
    for (unsigned i = 0; i < threads; i++) {
        w[i] = (struct worker){.seed = i + 1, .pairs = pairs, .large = large};
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(w[i].thread, NULL);
    printf("%.2f\n", (seconds() - from) * 1e9 / (double)(pairs * threads));
    return strata_finalize(s) == STRATA_OK ? 0 : 1;
}
