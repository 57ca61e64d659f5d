/* softhca-stat: what the processes on the soft adapters have. */
#ifndef SOFTHCA_STAT_H
#define SOFTHCA_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "softhca/segment.h"

#define QP_STATES 7 /* of enum ibv_qp_state, from reset to error */

struct process_stat {
    uint32_t index;
    int pid;
    char program[HCA_NAME_ROOM];
    uint32_t qp[QP_STATES], qps; /* qps: the sum */
    uint32_t cqs, cqs_overrun, srqs, mrs, mrs_gone;
    uint64_t bytes_registered, bytes_adapter;
    bool port_down[HCA_DEVICES][HCA_PORTS], device_gone[HCA_DEVICES];
};

/* process.c: the indices in use in this user's fabric, ascending; how many, at most HCA_PROCESSES; -1: errno says why
 * not. */
int stat_indices(uint32_t index[HCA_PROCESSES]);
/* A connection to a process, and its pid; -1: it is gone. */
int stat_connect(uint32_t index, int *pid);
/* segment.c: reads a process's segment; false: it has none that makes sense. */
bool stat_read(uint32_t index, int pid, struct process_stat *s);
/* command.c: sends a command to a process and prints its answer; the exit status. */
int stat_command(int pid, const char *command);
/* print.c */
void stat_print_text(FILE *out, const struct process_stat *s, size_t n);
bool stat_print_json(FILE *out, const struct process_stat *s, size_t n);

#endif
