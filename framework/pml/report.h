/* How peers are reached and what went to them and came from them, for people (mca_base_report_transports) and programs
 * (strata_peer_report). */
#ifndef ST_PML_REPORT_H
#define ST_PML_REPORT_H

#include <jansson.h>
#include <strata/strata.h>

/* At finalize: prints what mca_base_report_transports asks for. */
void st_report_transports(strata_t *s);

/* What it prints as JSON: how each peer was reached, what went to it and came from it, what the modules carried. NULL
 * without memory. With the lock held. */
json_t *st_report_transports_json(strata_t *s);
/* Of each peer rank, transport and the four counts. NULL without memory. With the lock held. */
json_t *st_report_traffic_json(strata_t *s);
/* Prints that as lines of text (report_text.c). */
void st_report_transports_text(strata_t *s, json_t *report);

#endif
