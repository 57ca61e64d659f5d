/* Reports of the PML about itself. */
#ifndef OB1_REPORT_H
#define OB1_REPORT_H

#include <strata/sdk/pml.h>
#include "choose.h"

struct ob1_cpeer;

/* describe.c: st_pml_ops.describe. The protocols of messages to a peer as JSON: limits, facts of the path, ways. */
char *ob1_describe(struct st_pml *pml, int rank);

/* report.c */
void ob1_traffic_add(struct st_pml_traffic *sum, const struct ob1_cpeer *p);
bool ob1_traffic(struct st_pml *pml, int rank, struct st_pml_traffic *out);
void ob1_mem_report(struct st_pml *pml, st_mem_line_fn line, void *arg);
#define OB1_N_COUNTERS (7 + OB1_P_COUNT)
extern const struct st_counter ob1_counters[OB1_N_COUNTERS];
void ob1_count(const struct st_counting *counting, uint64_t *value);
void ob1_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted);

#endif
