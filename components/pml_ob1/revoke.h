/* Revoked tags of a matching context, also after it was freed. */
#ifndef OB1_REVOKE_H
#define OB1_REVOKE_H

#include <strata/sdk/pml.h>

struct ob1;
struct ob1_arrival;
struct ob1_comm;
struct ob1_msg;
struct ob1_peer;

/* A context that was freed and had revoked tags. */
struct ob1_revoked {
    uint32_t id;
    int below;
};

/* As st_pml_ops.revoke. */
void ob1_revoke(strata_comm_t *comm, int below);
/* Ends a message that nobody will receive, and frees msg: its sender is told that it is done with. */
void ob1_discard_msg(struct ob1 *pml, struct ob1_peer *peer, struct ob1_msg *msg);
/* A message for a context that does not exist: true when its tag was revoked there, and the message was discarded. */
bool ob1_discard_late(struct ob1 *pml, const struct ob1_arrival *a);
/* The context is freed: remembers what was revoked in it. */
void ob1_revoked_keep(struct ob1 *pml, const struct ob1_comm *c);
/* A context of that id is made. */
void ob1_revoked_forget(struct ob1 *pml, uint32_t id);

#endif
