/* How peers are reached, for people (mca_base_report_transports) and programs (strata_peer_report). */
#ifndef ST_PML_REPORT_H
#define ST_PML_REPORT_H

#include <strata/strata.h>

/* At finalize: prints what mca_base_report_transports asks for. */
void st_report_transports(strata_t *s);

#endif
