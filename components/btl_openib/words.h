/* Between connect.c, which knows what is to be said to a peer, and words.c, which says it. */
#ifndef IB_WORDS_H
#define IB_WORDS_H

#include "openib.h"

/* By w's method, now; as struct ib_method's send. */
int ib_say(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w, enum ib_conn_type type);
/* What a peer in this state is told until it answers, by sockets too when it does not. */
void ib_say_on(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w);
/* Once, to a peer of which nothing is kept. */
void ib_tell(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, enum ib_conn_type type);
/* What its state says, for a second. */
void ib_tell_for_a_while(struct ib_peer *p);
/* Into the list of those with a timer, for so many ns; NULL: no memory. */
struct ib_wire_up *ib_watch(struct ib_module *m, struct ib_peer *p, const struct ib_card *card, uint64_t give_up);
/* ns that an answer may take. */
static inline uint64_t ib_give_up_after(const struct ib_module *m)
{
    return (uint64_t)m->par->connect_timeout_ms * 1000000u;
}

#endif
