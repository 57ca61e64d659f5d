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
    {"rxe", "protection/send_from_wrong_memory_status",
     "completes with LOC_QP_OP_ERR. IBA 11.6.2: a locally posted request whose buffers do not reference a valid memory "
     "region for the "
     "operation is a Local Protection Error"},
    {"rxe", "protection/receive_into_wrong_memory_status",
     "completes with LOC_QP_OP_ERR. IBA 11.6.2: a locally posted request whose buffers do not reference a valid memory "
     "region for the "
     "operation is a Local Protection Error"},
    {"rxe", "protection/longer_than_receive_status",
     "completes with LOC_QP_OP_ERR. IBA 11.6.2: a receive buffer too small for a valid incoming message is a Local "
     "Length Error"},
    {"rxe", "protection/registered_anew",
     "has no ibv_rereg_mr (\"operation not supported\"). man ibv_rereg_mr: it modifies the attributes of an existing "
     "region"},
    {"rxe", "flush/last_wqe_reached",
     "never tells LAST_WQE_REACHED. man ibv_get_async_event: IBV_EVENT_QP_LAST_WQE_REACHED, last WQE reached on a QP "
     "associated with an "
     "SRQ; IBA 11.6.3: it is generated when a QP with an SRQ is in the Error state and has taken its last WQE"},
    {"rxe", "flush/last_wqe_after_error", "never tells LAST_WQE_REACHED, as flush/last_wqe_reached has it"},
    {"rxe", "processes/reset_at_once",
     "a change to RESET while the kernel still works on an error leaves the queue pair in ERR (Linux 6.1: the state is "
     "written before that work has ended, which writes ERR over it); the kernel may crash when packets are still "
     "travelling. IBA 10.3.1: Modify Queue Pair to Reset takes it there from any state"},
    {"rxe", "srq/limit_armed_below",
     "arming the limit while fewer receives are posted makes no event; the next receive that is taken does. IBA "
     "10.2.9: when the number "
     "of outstanding requests is below the limit when it is armed, the event is generated immediately"},
    {"rxe", "events/access_error",
     "makes no event of a queue pair when it refuses an access. man ibv_get_async_event: IBV_EVENT_QP_ACCESS_ERR, "
     "local access violation "
     "error; IBA 11.6.3: it is raised at the responder"},
    {"rxe", "events/communication_established",
     "makes no COMM_EST. man ibv_get_async_event: IBV_EVENT_COMM_EST, communication was established on a QP; IBA "
     "11.6.3: the first packet "
     "has arrived at a QP in RTR"},
};

#endif
