/* User memory for put, get and zcopy, registered through the context's cache. */
#ifndef IB_REGISTRATION_H
#define IB_REGISTRATION_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/rcache.h>

struct ib_module;

struct ib_registrar {
    struct st_rcache *cache;        /* the context's */
    struct st_rcache_client client; /* this module in it */
    bool attached;
    bool warned;      /* that memory cannot be registered */
    uint64_t refused; /* ns, time of the first failure since the last success; 0: none */
};

/* The key of registered memory, as it travels. */
struct ib_key {
    uint32_t rkey;
    uint32_t rail; /* of the owner: keys of one device mean nothing to another */
};
_Static_assert(sizeof(struct ib_key) <= ST_BTL_KEY_MAX, "a key fits");
int ib_registrations_open(struct ib_module *m);
void ib_registrations_close(struct ib_module *m); /* undoes them all; nothing may be in flight */
int ib_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
void ib_dereg(struct st_btl *btl, struct st_btl_reg *reg);

#endif
