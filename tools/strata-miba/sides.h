/* Both sides of a run. The leading side goes through the cases; the other one does what it is told over the link. */
#ifndef MIBA_SIDES_H
#define MIBA_SIDES_H

#include "test.h"

/* What a side said in place of its part: "not STATUS REASON". */
enum miba_status sides_take_refusal(struct miba *m, const char *line, const char *who);

/* Leads one case: builds, connects, measures, and adds its results or the reason why there are none. Anything but
 * MIBA_OK ends the run. *failed is set when the case failed. */
enum miba_status lead_case(struct miba *m, const struct miba_case *c, bool *failed);

/* Follows until the leading side ends. MIBA_OK: it did so in order. */
enum miba_status follow(struct miba *m);

/* How both sides meet (session.c). */
struct session {
    const char *connect; /* host of the server; NULL: none */
    bool server;
    const char *port;
};
/* Sets m->link and m->leads. With neither a host nor a server there are both sides here: the other one is a child. Ends
 * the child with its work done; the leading side goes on. Before any device is open. */
enum miba_status session_begin(struct miba *m, const struct session *s);
/* Says that the run is over. False: the child ended with an error. m->why is set where the child was stopped, and
 * killed. */
bool session_end(struct miba *m);

#endif
