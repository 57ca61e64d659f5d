/* Business cards: ours, those of peers, and addresses that are no longer what cards say. */
#ifndef IB_CARD_H
#define IB_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include "wire.h"

struct ib_module;
struct ib_peer;

/* ---- card.c ---- */
int ib_card_fill(struct ib_module *m); /* ours, but for what the methods of connecting fill in */
/* The card of rank's port that corresponds to this one, with the address that is known now. Where there is none its
 * version is 0, and `rails` are the others that rank has. */
int ib_card_fetch(struct ib_module *m, int rank, struct ib_card *out, char *why, size_t why_size);
void ib_card_misfit(struct ib_module *m, int rank, const struct ib_card *card, const char *why); /* logs it once */
void ib_card_set_address(struct ib_card *card, const struct ib_address *a);

/* ---- address.c ---- */
bool ib_address_refresh(struct ib_module *m); /* whether our port is active; acts on a change of its address */
/* A peer may have another address than we know. */
void ib_address_heard(struct ib_module *m, struct ib_peer *p, const struct ib_conn *c);

#endif
