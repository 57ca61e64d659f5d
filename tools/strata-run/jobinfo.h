/* The description of the job that the PMIx server hands to each rank as it joins. */
#ifndef RUN_JOBINFO_H
#define RUN_JOBINFO_H

#include <pmix_server.h>
#include "job.h"

struct jobinfo {
    pmix_info_t *items;
    size_t n;
};

/* -1 when out of memory. */
int jobinfo_create(const struct job *job, struct jobinfo *out);
void jobinfo_destroy(struct jobinfo *info);

#endif
