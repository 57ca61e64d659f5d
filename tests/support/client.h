/* A client of the worker beside the PML, as small as one can be that does all that a client has to: numbered messages
 * of up to CLIENT_MOST bytes from rank to rank, each delivered once, in any order. docs/write-a-client.md goes through
 * it. At STRATA_THREAD_MULTIPLE any thread may send. */
#ifndef TEST_SUPPORT_CLIENT_H
#define TEST_SUPPORT_CLIENT_H

#include <stdbool.h>
#include <strata/sdk/worker.h>

enum { CLIENT_MOST = 512 };

struct client;

/* Called for each message that has arrived, from progress, with the lock held. */
typedef void (*client_take_fn)(void *arg, int from, uint32_t number, const void *data, uint32_t len);

/* Joins the worker. NULL: no memory, or another one is there. */
struct client *client_open(struct st_worker *worker, client_take_fn take, void *arg);
/* Leaves it. Nothing may wait: drain first. */
void client_close(struct client *c);

/* Sends a message to a rank of the job: at once, or by and by. STRATA_OK, STRATA_ERR_ARG (longer than CLIENT_MOST),
 * STRATA_ERR_NOMEM, STRATA_ERR_UNREACHABLE, STRATA_ERR_PEER. */
int client_send(struct client *c, int rank, const void *data, uint32_t len);

/* How often something had to wait; how many messages wait now; peers that have failed; messages lost with these. */
struct client_counts {
    uint64_t waited, waiting, failed, dropped;
};
struct client_counts client_counts(struct client *c);

#endif
