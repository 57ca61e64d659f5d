/* Records of what a context has sent, counted and holds, which strata-run gathers and merges: one when the context
 * ends, and one whenever strata-run asks. They are files in the folder mca_base_report_folder; without it nothing is
 * done.
 *
 *     ask                   4 bytes that strata-run adds one to; who waits for that sleeps on them (a shared futex)
 *     end.RANK.XXXXXX       a record, of the context's end
 *     asked.N.RANK.XXXXXX   a record, in answer to the Nth question
 *
 * A record is complete as soon as its file has that name. */
#ifndef ST_BASE_JOB_REPORT_H
#define ST_BASE_JOB_REPORT_H

#include <strata/strata.h>

/* Begins to listen for questions, on a thread of its own that only sleeps and passes them on to the worker. The context
 * is complete. A folder that cannot be used costs the reports, with a warning, and nothing else. */
void st_job_report_start(strata_t *s);
/* A question has come (st_worker_ask): answers it. On a thread that is inside Strata, outside every lock. */
void st_job_report_answer(strata_t *s);
/* What a record holds, as JSON, to be freed: rank, host, peers with transport, messages and bytes, counters, memory.
 * NULL without memory. On a thread that is inside Strata, outside every lock. */
char *st_job_report_text(strata_t *s);
/* The context ends: leaves its record. */
void st_job_report_end(strata_t *s);
/* Ends listening; before the worker goes. */
void st_job_report_stop(strata_t *s);

#endif
