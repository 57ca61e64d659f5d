/* Job description: sizes, who is where, and per rank the numbers that MPI libraries ask for, so that their programs run
 * under strata-run as well. Everything is computed once, before the first rank starts. */
#define _GNU_SOURCE
#include "jobinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOB_ITEMS = 14, RANK_ITEMS = 6 };

/* "0,1,...,n-1" */
static char *list_of_ranks(int n)
{
    char *text = malloc((size_t)n * 12 + 1), *p = text;
    for (int i = 0; text && i < n; i++)
        p += sprintf(p, i ? ",%d" : "%d", i);
    return text;
}

static void add_u32(struct jobinfo *info, const char *key, uint32_t value)
{
    PMIX_INFO_LOAD(&info->items[info->n], key, &value, PMIX_UINT32);
    info->n++;
}

static void add_text(struct jobinfo *info, const char *key, const char *value)
{
    PMIX_INFO_LOAD(&info->items[info->n], key, value, PMIX_STRING);
    info->n++;
}

/* "pmix[...]" is what PMIx_generate_regex and PMIx_generate_ppn make of one node. They are not called: in libpmix 4.2.2
 * a name with 57 characters before its first digit overflows a buffer of theirs. */
static int add_map(struct jobinfo *info, const char *key, const char *what)
{
    char *text = NULL;
    if (asprintf(&text, "pmix[%s]", what) < 0)
        return -1;
    PMIX_INFO_LOAD(&info->items[info->n], key, text, PMIX_REGEX);
    info->n++;
    free(text);
    return 0;
}

static void add_rank(struct jobinfo *info, int rank)
{
    pmix_data_array_t array;
    pmix_rank_t number = (pmix_rank_t)rank;
    uint16_t local = (uint16_t)rank;
    uint32_t zero = 0;
    PMIX_DATA_ARRAY_CONSTRUCT(&array, RANK_ITEMS, PMIX_INFO);
    pmix_info_t *item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_RANK, &number, PMIX_PROC_RANK); /* must be first: names whose data this is */
    PMIX_INFO_LOAD(&item[1], PMIX_GLOBAL_RANK, &number, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&item[2], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&item[3], PMIX_NODE_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&item[4], PMIX_APPNUM, &zero, PMIX_UINT32);
    PMIX_INFO_LOAD(&item[5], PMIX_NODEID, &zero, PMIX_UINT32);
    PMIX_INFO_LOAD(&info->items[info->n], PMIX_PROC_DATA, &array, PMIX_DATA_ARRAY);
    info->n++;
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

int jobinfo_create(const struct job *job, struct jobinfo *out)
{
    int n = job->options->n;
    char *peers = list_of_ranks(n);
    out->n = 0;
    PMIX_INFO_CREATE(out->items, (size_t)(JOB_ITEMS + n));
    if (!peers || !out->items) {
        free(peers);
        return -1;
    }
    add_u32(out, PMIX_UNIV_SIZE, (uint32_t)n);
    add_u32(out, PMIX_JOB_SIZE, (uint32_t)n);
    add_u32(out, PMIX_MAX_PROCS, (uint32_t)n);
    add_u32(out, PMIX_LOCAL_SIZE, (uint32_t)n);
    add_u32(out, PMIX_NODE_SIZE, (uint32_t)n);
    add_u32(out, PMIX_NUM_NODES, 1);
    add_u32(out, PMIX_JOB_NUM_APPS, 1);
    add_text(out, PMIX_JOBID, job->nspace);
    add_text(out, PMIX_LOCAL_PEERS, peers);
    pmix_rank_t leader = 0;
    PMIX_INFO_LOAD(&out->items[out->n], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
    out->n++;
    char all[32];
    snprintf(all, sizeof(all), n > 1 ? "0-%d" : "%d", n - 1);
    int failed = add_map(out, PMIX_NODE_MAP, job->host) | add_map(out, PMIX_PROC_MAP, all);
    free(peers);
    if (failed) {
        jobinfo_destroy(out);
        return -1;
    }
    for (int i = 0; i < n; i++)
        add_rank(out, i);
    return 0;
}

void jobinfo_destroy(struct jobinfo *info)
{
    PMIX_INFO_FREE(info->items, info->n);
}
