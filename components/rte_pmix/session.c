/* The process's connection to its PMIx server. Process-wide by nature: PMIx has one per process and counts the calls of
 * PMIx_Init, so that an MPI library in the same process can use it too. */
#define _GNU_SOURCE
#include "rte_pmix.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static struct {
    pthread_mutex_t lock;
    unsigned made; /* contexts ever made here; names their cards, so it never goes back */
    unsigned open; /* contexts that are not finalized */
    pid_t pid;     /* who joined; 0: nobody. A forked child is somebody else */
    pmix_proc_t me;
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
static void session_pin(void)
{
    Dl_info info;
    if (dladdr(&session, &info) != 0 && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

pmix_status_t rte_pmix_session_join(pmix_proc_t *me, unsigned *instance)
{
    pmix_status_t rc = PMIX_SUCCESS;
    pthread_mutex_lock(&session.lock);
    if (session.pid && session.pid != getpid()) { /* forked from a rank: PMIx's thread is not here */
        rc = PMIX_ERR_INIT;
    } else if (!session.pid) {
        session_pin();
        rc = PMIx_Init(&session.me, NULL, 0);
        if (rc == PMIX_SUCCESS)
            session.pid = getpid();
    }
    if (rc == PMIX_SUCCESS) {
        *me = session.me;
        *instance = session.made++;
        session.open++;
    }
    pthread_mutex_unlock(&session.lock);
    return rc;
}

void rte_pmix_session_leave(void)
{
    pthread_mutex_lock(&session.lock);
    session.open--;
    pthread_mutex_unlock(&session.lock);
}

/* Not when the last context closes but when the process ends: a process that finalizes PMIx and joins again is an
 * unsteady participant. libpmix 4.2 then ends fences of the others early ("partial success") and loses questions. A
 * process that ends with a context that is not finalized has failed its peers, which may wait for it: the launcher
 * learns that from the connection, which breaks without PMIx_Finalize. */
__attribute__((destructor)) static void session_finalize(void)
{
    if (session.pid && session.pid == getpid() && session.open == 0)
        (void)PMIx_Finalize(NULL, 0);
    session.pid = 0;
}
