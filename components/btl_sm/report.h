/* Reports of the module about itself. */
#ifndef SM_REPORT_H
#define SM_REPORT_H

#include <strata/sdk/btl.h>

void sm_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
#define SM_N_COUNTERS 7
extern const struct st_counter sm_counters[SM_N_COUNTERS];
void sm_count(const struct st_counting *counting, uint64_t *value);
char *sm_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif
