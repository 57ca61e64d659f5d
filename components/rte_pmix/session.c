/* The process's connection to its PMIx server. Process-wide by nature: PMIx has one per process and counts the calls of
 * PMIx_Init, so that an MPI library in the same process can use it too. */
#define _GNU_SOURCE
#include "rte_pmix.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static struct {
    pthread_mutex_t lock;
    unsigned made; /* contexts ever made here; names their cards, so it never goes back */
    bool pinned;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool rte_pmix_launched(void)
{
    const char *nspace = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
    if (!nspace || !*nspace || !rank || !*rank)
        return false;
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            return true;
    return false;
}

/* The plugin stays in memory once PMIx has run in it: unloading would lose the count of contexts, and libpmix leaves
 * handlers behind that must not dangle. In the static form there is nothing to pin and dlopen only adds a count. */
static void pin(void)
{
    Dl_info info;
    if (session.pinned)
        return;
    session.pinned = true;
    if (dladdr(&session, &info) != 0 && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

pmix_status_t rte_pmix_session_join(pmix_proc_t *me, unsigned *instance)
{
    pthread_mutex_lock(&session.lock);
    pin();
    pmix_status_t rc = PMIx_Init(me, NULL, 0);
    if (rc == PMIX_SUCCESS)
        *instance = session.made++;
    pthread_mutex_unlock(&session.lock);
    return rc;
}

void rte_pmix_session_leave(void)
{
    pthread_mutex_lock(&session.lock);
    (void)PMIx_Finalize(NULL, 0);
    pthread_mutex_unlock(&session.lock);
}
