/* Malformed fragments of a peer: dropped, counted, logged. */
#include "ob1_inl.h"

ST_COLD void ob1_protocol_error(struct ob1 *pml, const struct st_frag *frag, const char *what)
{
    /* One line for the first few: a peer must not be able to fill the log. */
    if (pml->n_protocol_errors++ < 8)
        st_log(pml->head.context, ST_LOG_WARN, "pml_ob1", "dropped a fragment from rank %d by %s: %s", frag->rank,
               frag->btl && frag->btl->component ? frag->btl->component->name : "?", what);
}
