/* Run-time parameters of btl_sm: the config struct that the rows in params.c fill. */
#ifndef SM_PARAMS_H
#define SM_PARAMS_H

#include <strata/sdk/component.h>

enum sm_attach_method { SM_ATTACH_AUTO, SM_ATTACH_PROC, SM_ATTACH_SOCKET };
enum sm_single_copy { SM_COPY_AUTO, SM_COPY_OFF, SM_COPY_ONE_SIDED, SM_COPY_COOPERATIVE };

/* Most slots, powers of two; how far messages come out of order depends on them: polling.h. */
#define SM_QUEUE_SLOTS_MOST 512
#define SM_RING_SLOTS_MOST  256

/* Defaults in KiB; the calibration tells by them whether the user has set a limit. */
#define SM_EAGER_LIMIT_KIB  16
#define SM_STREAM_LIMIT_KIB 64
#define SM_RDMA_MIN         65536 /* where nothing has been measured */

struct sm_params {
    size_t eager_limit;
    size_t max_send;
    size_t pipeline_send;
    size_t stream_limit;
    size_t rdma_min; /* 0: by calibration */
    int64_t queue_slots;
    int64_t cells;
    int64_t rings;
    int64_t ring_slots;
    size_t ring_data;
    int64_t promote_after;
    int64_t promote_window;
    int attach; /* enum sm_attach_method */
    int64_t attach_timeout_ms;
    int single_copy; /* enum sm_single_copy */
    size_t coop_min;
    size_t coop_chunk;
    int64_t movs_min;    /* -1: by the processor; 0: never */
    size_t memory_limit; /* 0: none */
    int64_t close_timeout_ms;
    int64_t late_peers;
};

#define SM_N_PARAMS 21
extern const struct st_param sm_param_rows[SM_N_PARAMS];

#endif
