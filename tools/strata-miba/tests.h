/* The tests, each in the file of its group. */
#ifndef MIBA_TESTS_H
#define MIBA_TESTS_H

#include "test.h"

/* Values of a test, for the two members of struct miba_test. */
#define VALUES(array) .values = (array), .n_values = sizeof(array) / sizeof *(array)
/* Sizes of messages, for the two other members. */
#define SIZES(array)    .sizes = (array), .n_sizes = sizeof(array) / sizeof *(array)
#define EVERY_TRANSPORT (BIT(RC) | BIT(UC) | BIT(UD))
/* Operations that move data of any size. */
#define DATA (BIT(OP_SEND) | BIT(OP_WRITE) | BIT(OP_READ))
/* What tests of one attribute have in common: latency and bandwidth of these operations by the attribute's values, for
 * messages of these sizes. */
#define OF_ATTRIBUTE(array, bytes)                                                                                     \
    VALUES(array), SIZES(bytes), .variants = traffic_variants, .ops = DATA, .values_fixed = true

extern const struct miba_test test_qp, test_qp_connected;                                    /* test_qp.c */
extern const struct miba_test test_cq;                                                       /* test_cq.c */
extern const struct miba_test test_registration, test_registration_many, test_region;        /* test_memory.c */
extern const struct miba_test test_post_send, test_post_recv;                                /* test_post.c */
extern const struct miba_test test_poll_empty, test_poll_full;                               /* test_poll.c */
extern const struct miba_test test_latency, test_bandwidth, test_window, test_both_ways;     /* test_basic.c */
extern const struct miba_test test_cpu;                                                      /* test_cpu.c */
extern const struct miba_test test_translation_1, test_translation_2;                        /* test_translation.c */
extern const struct miba_test test_qps, test_segments, test_scatter, test_max_sge, test_srq; /* test_queues.c */
extern const struct miba_test test_mtu, test_service;                                        /* test_path.c */
extern const struct miba_test test_inline, test_signalling, test_lists, test_immediate;      /* test_posting.c */
extern const struct miba_test test_events, test_atomics, test_visibility;                    /* test_semantics.c */
extern const struct miba_test test_load, test_incast;                                        /* test_load.c */
extern const struct miba_test test_cm;                                                       /* test_cm.c */

#endif
