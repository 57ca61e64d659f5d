/* What a kind of device is known to do otherwise than its specification or manual page says. A case that is named here
 * is left out on that kind, and reported as skipped with the reason; VERBS_RUN_DIFFERENCES=1 runs it all the same. IBA:
 * InfiniBand Architecture Specification, volume 1. */
#ifndef VERBS_DIFFERENCES_H
#define VERBS_DIFFERENCES_H

static const struct {
    const char *kind;   /* name of the device without its digits */
    const char *name;   /* program/case */
    const char *reason; /* what it does; what it should do, and who says so */
} differences[] = {
    {"rxe", "states/bad_pkey_index_refused",
     "accepts any pkey_index. IBA 11.2: modifying a queue pair with an invalid P_Key index returns an error"},
    {"rxe", "states/bad_dest_rd_atomic_refused",
     "checks max_rd_atomic only. IBA 11.2: a number of responder resources beyond the device's is an error"},
    {"rxe", "states/receive_in_error_is_flushed",
     "a receive posted in the error state stays in the queue until something else wakes the responder. IBA 10.3.1.7: "
     "work requests "
     "submitted in the Error state are completed in error"},
    {"rxe", "states/drained_queue_resumes",
     "the change from SQD to RTS does not wake the send queue; the next post does. IBA 10.3.1.5: in RTS processing "
     "resumes"},
    {"rxe", "datagram/too_long_for_receive",
     "the receive completes with LOC_QP_OP_ERR, not LOC_LEN_ERR. man ibv_poll_cq lists the statuses; IBA 10.8: length "
     "errors are Local "
     "Length Error"},
};

#endif
