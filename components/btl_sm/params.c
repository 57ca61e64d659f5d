/* The rows behind struct sm_params. */
#include "params.h"

#define TEXT(number)     #number
#define KIB_TEXT(number) TEXT(number) "k"
#define ROW(field, kind, dflt_, lo, hi, unit_, level_, help_)                                                          \
    {                                                                                                                  \
        .name = #field, .type = kind, .offset = offsetof(struct sm_params, field), .dflt = dflt_, .min = lo,           \
        .max = hi, .unit = unit_, .help = help_, .level = level_                                                       \
    }
#define CHOICE(field, dflt_, list, level_, help_)                                                                      \
    {                                                                                                                  \
        .name = #field, .type = ST_PARAM_ENUM, .offset = offsetof(struct sm_params, field), .dflt = dflt_,             \
        .help = help_, .level = level_, .choices = list                                                                \
    }

static const char *const attach_names[] = {"auto", "proc", "socket", NULL};
static const char *const single_copy_names[] = {"auto", "off", "one_sided", "cooperative", NULL};

const struct st_param sm_param_rows[SM_N_PARAMS] = {
    ROW(eager_limit, ST_PARAM_SIZE, KIB_TEXT(SM_EAGER_LIMIT_KIB), 64, 1 << 20, "bytes", 3,
        "Largest message sent before the receiver has matched it; at most btl_sm_max_send."),
    ROW(max_send, ST_PARAM_SIZE, "16k", 1024, 1 << 20, "bytes", 4,
        "Largest payload of one fragment; a cell and a third of a ring's data area hold it."),
    ROW(pipeline_send, ST_PARAM_SIZE, "16k", 512, 1 << 20, "bytes", 4,
        "Payload of the fragments of a longer message; small pieces let both ranks copy at the same time."),
    ROW(stream_limit, ST_PARAM_SIZE, KIB_TEXT(SM_STREAM_LIMIT_KIB), 64, 1 << 30, "bytes", 4,
        "Up to this size a message is streamed as fragments without asking the receiver first."),
    ROW(rdma_min, ST_PARAM_SIZE, "0", 0, 0, "bytes", 3,
        "Smallest message moved by single copy; 0: measured when the first peer is connected, then learnt from "
        "messages."),
    ROW(queue_slots, ST_PARAM_INT, "64", 8, SM_QUEUE_SLOTS_MOST, "slots", 5,
        "Slots of the queue shared by all senders, 256 bytes each; rounded up to a power of two."),
    ROW(cells, ST_PARAM_INT, "16", 1, 4096, "cells", 5,
        "Most buffers for fragments too long for a queue slot; each is reserved when first needed."),
    ROW(rings, ST_PARAM_INT, "16", 0, 1024, "rings", 3, "Private rings for hot peers; 0: only the shared queue."),
    ROW(ring_slots, ST_PARAM_INT, "128", 8, SM_RING_SLOTS_MOST, "slots", 5,
        "Descriptors of a ring, 64 bytes each; rounded up to a power of two."),
    ROW(ring_data, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 5,
        "Largest data area of a ring; raised to three times btl_sm_max_send and rounded up to a power of two. 0: "
        "256 KiB, less where more than three processes share the machine."),
    ROW(promote_after, ST_PARAM_INT, "8", 1, 1 << 30, "messages", 5,
        "Messages by the shared queue after which a peer is given a ring."),
    ROW(promote_window, ST_PARAM_INT, "1024", 1, 1 << 30, "messages", 6,
        "Arrivals after which the counts of messages by the shared queue are halved."),
    CHOICE(
        attach, "auto", attach_names, 6,
        "How peers' segments are opened: /proc/PID/fd, a socket served by the owner, or auto: the first that works."),
    ROW(attach_timeout_ms, ST_PARAM_INT, "10000", 1, 1 << 30, "ms", 6,
        "How long to wait for a peer to hand over its segment by socket."),
    CHOICE(single_copy, "auto", single_copy_names, 2,
           "Copying straight between two processes' memory: off, by one side, or by both sides together."),
    ROW(coop_min, ST_PARAM_SIZE, "64k", 4096, 1 << 30, "bytes", 5,
        "Smallest single copy in which both sides take part."),
    ROW(coop_chunk, ST_PARAM_SIZE, "128k", 4096, 1 << 30, "bytes", 6,
        "Most bytes of a single copy that one side does at a time."),
    ROW(movs_min, ST_PARAM_INT, "-1", -1, 1 << 30, "bytes", 7,
        "Shortest payload that the sender copies by REP MOVSB; 0: none, memcpy copies all; -1: by the processor."),
    ROW(memory_limit, ST_PARAM_SIZE, "0", 0, 0, "bytes", 5,
        "Most shared memory that this process may reserve; 0: no limit but the machine's."),
    ROW(close_timeout_ms, ST_PARAM_INT, "1000", 0, 1 << 30, "ms", 7,
        "How long closing waits for peers to take fragments out of this process's cells."),
    ROW(late_peers, ST_PARAM_INT, "512", 0, 1 << 20, "processes", 6,
        "Processes that may join on this machine after the start and be there at the same time, where the job can "
        "grow; 24 bytes each."),
};
