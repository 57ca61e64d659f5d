/* Which connections are closed, and whether another may be made: conn_evict.c. */
#ifndef IB_CONN_EVICT_H
#define IB_CONN_EVICT_H

#include <stdbool.h>
#include <stdint.h>

struct ib_module;
struct ib_peer;

struct ib_evict {
    struct ib_peer *hand; /* of the clock that finds the least recently used */
    uint64_t room_ns;     /* last eviction for want of queue pairs */
    uint32_t cq_peers;    /* peers whose completions fit the CQs */
    uint32_t short_peers; /* peers with queue pairs when the device gave no more */
    uint64_t short_until; /* ns, end of that shortage; 0: there is none */
    bool short_in_vain;   /* one of them has gone, and the device still gives none */
};

/* Whether p may be connected now; where there are too many, the least recently used one is closed. */
bool ib_evict_for_connection(struct ib_module *m, struct ib_peer *p);
bool ib_evict_for_request(struct ib_module *m, struct ib_peer *p); /* the same for one that asks us */
/* Queue pairs are wanted that the device does not give: closes a connection. */
void ib_evict_one(struct ib_module *m);
/* The device has just given no more queue pairs; whether it has lately. For so long only so many peers are asked at a
 * time that those who ask us find room. */
void ib_evict_short(struct ib_module *m);
bool ib_evict_is_short(const struct ib_module *m);
bool ib_evict_asks_too_many(const struct ib_module *m);

#endif
