/* Answers to strata-info --live: a context listens at an abstract unix socket, "strata-live-PID-K" with K from 0 to
 * ST_LIVE_MOST - 1 by context of the process, on a thread that sleeps in accept(2). It answers a connection of the same
 * user, or root, with what st_job_report_text makes, once a thread is inside Strata; the connection's end is the
 * text's. Nothing of it is on the way of messages. */
#ifndef ST_BASE_LIVE_H
#define ST_BASE_LIVE_H

#include <strata/strata.h>

enum { ST_LIVE_MOST = 8, ST_LIVE_NAME = 64 };

struct sockaddr_un;
/* The address of context `k` of process `pid`; its length for bind and connect. */
unsigned st_live_address(struct sockaddr_un *at, int pid, int k);

/* Begins to listen, where mca_base_live is on, the context belongs to a job and the process has threads already. The
 * context is complete. What cannot be made costs the answers only. */
void st_live_start(strata_t *s);
/* A question has come (st_worker_ask): hands the text over. On a thread that is inside Strata, outside every lock. */
void st_live_answer(strata_t *s);
/* Ends listening; before the worker goes. */
void st_live_stop(strata_t *s);

#endif
