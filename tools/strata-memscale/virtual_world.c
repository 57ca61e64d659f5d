#define _GNU_SOURCE 1
#include "virtual_world.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "meeting.h"

enum { PAUSE_US = 500 };

struct virtual_world {
    strata_host_t host;
    const char *folder;
    struct meeting *meeting;
    int n_real;
    atomic_int fences; /* that this rank has called */
    int *real;         /* 0 .. n_real - 1 */
    char job[64];
};

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_US * 1000}, NULL);
}

/* FOLDER/blob.RANK.KEY; a key may have slashes. */
static void blob_path(const struct virtual_world *w, int rank, const char *key, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/blob.%d.", w->folder, rank);

    for (size_t at = (size_t)n; n > 0 && at + 1 < size && *key; key++, at++) {
        path[at] = *key == '/' ? '%' : *key;
        path[at + 1] = '\0';
    }
}

/* Others see it whole or not at all. */
static int world_put(void *user, const char *key, const void *blob, size_t length)
{
    struct virtual_world *w = user;
    char path[4400], part[4410];

    blob_path(w, w->host.rank, key, path, sizeof path);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "we");
    bool well = f && fwrite(blob, 1, length, f) == length;
    if (f && fclose(f) != 0)
        well = false;
    return well && rename(part, path) == 0 ? STRATA_OK : STRATA_ERR_SYSTEM;
}

/* The whole file, or NULL. */
static void *take_file(FILE *f, size_t *length)
{
    long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *blob = n >= 0 ? malloc((size_t)n + 1) : NULL;

    rewind(f);
    if (blob && fread(blob, 1, (size_t)n, f) != (size_t)n) {
        free(blob);
        blob = NULL;
    }
    *length = n > 0 ? (size_t)n : 0;
    return blob;
}

static int world_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    const struct virtual_world *w = user;
    char path[4400];

    if (rank >= w->n_real)
        return STRATA_ERR_NOT_FOUND;
    blob_path(w, rank, key, path, sizeof path);
    for (;;) {
        const bool all_started = meeting_is_full(w->meeting, MEETING_STARTED, w->n_real);
        FILE *f = fopen(path, "re");
        if (f) {
            void *found = take_file(f, length);
            fclose(f);
            if (!found)
                return STRATA_ERR_NOMEM;
            *blob = found;
            return STRATA_OK;
        }
        if (all_started)
            return STRATA_ERR_NOT_FOUND;
        pause_briefly();
    }
}

static int world_fence(void *user)
{
    struct virtual_world *w = user;
    const int number = atomic_fetch_add(&w->fences, 1) + 1;

    meeting_come(w->meeting, MEETING_FENCED);
    while (!meeting_is_full(w->meeting, MEETING_FENCED, number * w->n_real))
        pause_briefly();
    return STRATA_OK;
}

static int world_is_local(void *user, int rank)
{
    const struct virtual_world *w = user;

    return rank < w->n_real;
}

static const int *world_local_ranks(void *user, int *n)
{
    const struct virtual_world *w = user;

    *n = w->n_real;
    return w->real;
}

struct virtual_world *virtual_world_make(const char *folder, struct meeting *m, int n_ranks, int n_real)
{
    const char *rank = getenv("PMIX_RANK"), *slash = strrchr(folder, '/');
    struct virtual_world *w = calloc(1, sizeof *w);
    int *real = calloc((size_t)n_real, sizeof *real);

    if (!w || !real || !rank || n_real > n_ranks) {
        errno = w && real ? EINVAL : ENOMEM;
        free(w);
        free(real);
        return NULL;
    }
    for (int i = 0; i < n_real; i++)
        real[i] = i;
    *w = (struct virtual_world){.folder = folder, .meeting = m, .n_real = n_real, .real = real};
    snprintf(w->job, sizeof w->job, "%s", slash ? slash + 1 : folder);
    w->host = (strata_host_t){.size = sizeof w->host,
                              .user = w,
                              .rank = atoi(rank),
                              .n_ranks = n_ranks,
                              .job_id = w->job,
                              .put = world_put,
                              .get = world_get,
                              .fence = world_fence,
                              .is_local = world_is_local,
                              .local_ranks = world_local_ranks};
    return w;
}

const strata_host_t *virtual_world_host(struct virtual_world *w)
{
    return &w->host;
}

void virtual_world_started(struct virtual_world *w)
{
    meeting_come(w->meeting, MEETING_STARTED);
}
