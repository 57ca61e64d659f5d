/* Whether collectives were messages of Strata: those by shared memory are none. */
#ifndef TESTS_EMBED_SENT_MESSAGES_H
#define TESTS_EMBED_SENT_MESSAGES_H

#include "support.h"

/* Runs 50 rounds of `calls` beside the performance variable that counts messages sent, where there is one; a counter
 * counts from the making of its handle on. off: at least one message a round must have been sent, else none. */
static inline void check_messages(bool off, void (*calls)(void))
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long sent = 0;
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index("pml_strata_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS) {
        MPI(MPI_Barrier(MPI_COMM_WORLD));
        MPI(MPI_T_pvar_session_create(&session));
        MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
        for (int i = 0; i < 50; i++)
            calls();
        MPI(MPI_T_pvar_read(session, handle, &sent));
        CHECK(off ? sent >= 50 : sent == 0, "%llu messages", sent);
        MPI(MPI_T_pvar_handle_free(session, &handle));
        MPI(MPI_T_pvar_session_free(&session));
    }
    MPI_T_finalize();
}

#endif
