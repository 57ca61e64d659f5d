/* softhca-stat: what the processes on the soft adapters have. */
#ifndef SOFTHCA_STAT_H
#define SOFTHCA_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "softhca/segment.h"

#define QP_STATES 7 /* of enum ibv_qp_state, from reset to error */

#define FABRIC_ROOM 33 /* of the name of a fabric, with its terminating 0 */

/* Where a process listens. */
struct place {
    char fabric[FABRIC_ROOM];
    uint32_t index;
};

struct process_stat {
    struct place place;
    int pid;
    char program[HCA_NAME_ROOM];
    uint32_t qp[QP_STATES], qps; /* qps: the sum */
    uint32_t cqs, cqs_overrun, srqs, mrs, mrs_gone;
    uint64_t bytes_registered, bytes_adapter;
    struct cost_stat {
        bool set;
        uint64_t times, each_ps, ns; /* ns: the sum */
    } cost[HCA_COSTS];
    bool port_down[HCA_DEVICES][HCA_PORTS], device_gone[HCA_DEVICES];
};

/* process.c: the processes of this user, ordered by fabric and index, of SOFTHCA_FABRIC where that is set, else of all
 * fabrics; malloc'ed; NULL: errno says why not. */
struct place *stat_places(size_t *n);
/* A connection to a process, and its pid; -1: it is gone. */
int stat_connect(const struct place *place, int *pid);
/* segment.c: reads a process's segment; false: it has none that makes sense. */
bool stat_read(const struct place *place, int pid, struct process_stat *s);
/* command.c: sends a command to a process and prints its answer; the exit status. */
int stat_command(int pid, const char *command);
/* print.c */
void stat_print_text(FILE *out, const struct process_stat *s, size_t n);
bool stat_print_json(FILE *out, const struct process_stat *s, size_t n);

#endif
