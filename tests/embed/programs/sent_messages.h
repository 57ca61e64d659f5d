/* Whether collectives were messages of Strata: those by shared memory and by arrival are none. */
#ifndef TESTS_EMBED_SENT_MESSAGES_H
#define TESTS_EMBED_SENT_MESSAGES_H

#include "support.h"

/* Runs 50 rounds of `calls` beside the performance variables that count messages sent and Strata's collectives, where
 * there are some; a counter counts from the making of its handle on. off: at least one message a round must have been
 * sent, and no collective of Strata's begun; else the other way round. */
static inline void check_messages(bool off, void (*calls)(void))
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle, collectives;
    unsigned long long sent = 0, begun = 0;
    int provided, index, calls_index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index("pml_strata_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS &&
        MPI_T_pvar_get_index("pml_strata_collectives", MPI_T_PVAR_CLASS_COUNTER, &calls_index) == MPI_SUCCESS) {
        MPI(MPI_Barrier(MPI_COMM_WORLD));
        MPI(MPI_T_pvar_session_create(&session));
        MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
        MPI(MPI_T_pvar_handle_alloc(session, calls_index, NULL, &collectives, &count));
        for (int i = 0; i < 50; i++)
            calls();
        MPI(MPI_T_pvar_read(session, handle, &sent));
        MPI(MPI_T_pvar_read(session, collectives, &begun));
        CHECK(off ? sent >= 50 : sent == 0, "%llu messages", sent);
        CHECK(off ? begun == 0 : begun >= 50, "%llu collectives", begun);
        MPI(MPI_T_pvar_handle_free(session, &handle));
        MPI(MPI_T_pvar_handle_free(session, &collectives));
        MPI(MPI_T_pvar_session_free(&session));
    }
    MPI_T_finalize();
}

#endif
