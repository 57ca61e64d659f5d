/* Protection domains and address handles. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hca.h"

static _Atomic(uint32_t) pds, ahs;

/* Room for an object, one of `limit`; NULL: errno says why. */
static void *make(_Atomic(uint32_t) *count, uint32_t limit, size_t bytes)
{
    if (atomic_fetch_add(count, 1) < limit) {
        void *at = calloc(1, bytes);
        if (at)
            return at;
    }
    atomic_fetch_sub(count, 1);
    errno = ENOMEM;
    return NULL;
}

struct ibv_pd *hca_alloc_pd(struct ibv_context *c)
{
    static _Atomic(uint32_t) numbers;
    const bool gone = hca_device_gone(hca_context(c)->device->index);
    if (gone || hca_fault_now(HCA_FAULT_PD)) {
        errno = gone ? EIO : ENOMEM;
        return NULL;
    }
    struct hca_pd_own *pd = make(&pds, hca.limits.max_pd, sizeof *pd);
    if (!pd)
        return NULL;
    pd->ibv.context = c;
    /* Never 0, which no protection domain has. */
    do
        pd->number = atomic_fetch_add(&numbers, 1) + 1;
    while (!pd->number);
    pd->ibv.handle = HCA_NONE; /* of the kernel's: should a real device's provider be handed it */
    return &pd->ibv;
}

int hca_dealloc_pd(struct ibv_pd *pd)
{
    struct hca_pd_own *own = (struct hca_pd_own *)pd;
    if (atomic_load(&own->users))
        return EBUSY;
    atomic_fetch_sub(&pds, 1);
    free(own);
    return 0;
}

static bool makes_sense(const struct ibv_ah_attr *a)
{
    if (a->port_num < 1 || a->port_num > hca.limits.ports || a->sl > 15)
        return false;
    if (a->is_global && a->grh.sgid_index >= HCA_GIDS)
        return false;
    return a->is_global || !hca.limits.roce;
}

struct ibv_ah *hca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
    const bool gone = hca_device_gone(hca_context(pd->context)->device->index);
    if (gone || !makes_sense(a)) {
        errno = gone ? EIO : EINVAL;
        return NULL;
    }
    struct hca_ah_own *ah = make(&ahs, hca.limits.max_ah, sizeof *ah);
    if (!ah)
        return NULL;
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    ah->ibv.handle = HCA_NONE;
    ah->attr = *a;
    atomic_store(&ah->holders, 1);
    atomic_fetch_add(&((struct hca_pd_own *)pd)->users, 1);
    return &ah->ibv;
}

void hca_ah_let_go(struct hca_ah_own *ah)
{
    if (atomic_fetch_sub(&ah->holders, 1) == 1)
        free(ah);
}

/* A datagram that has not gone yet finds it destroyed, as a device does that looks for it then. */
int hca_destroy_ah(struct ibv_ah *ah)
{
    struct hca_ah_own *own = (struct hca_ah_own *)ah;

    atomic_fetch_sub(&((struct hca_pd_own *)ah->pd)->users, 1);
    atomic_fetch_sub(&ahs, 1);
    atomic_store(&own->destroyed, true);
    hca_ah_let_go(own);
    return 0;
}

/* The way back to where a datagram came from. */
int hca_init_ah_from_wc(struct ibv_context *c, uint8_t port, const struct ibv_wc *wc, const struct ibv_grh *grh,
                        struct ibv_ah_attr *a)
{
    *a = (struct ibv_ah_attr){.dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits, .port_num = port};
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    a->is_global = 1;
    a->grh.dgid = grh->sgid;
    const uint32_t first_word = ntohl(grh->version_tclass_flow);
    a->grh.flow_label = first_word & 0xfffff;
    a->grh.traffic_class = (uint8_t)(first_word >> 20);
    a->grh.hop_limit = 0xff;
    /* From the address that it was sent to. */
    for (int i = 0; i < HCA_GIDS; i++) {
        union ibv_gid gid;
        if (hca_query_gid(c, port, i, &gid) == 0 && memcmp(&gid, &grh->dgid, sizeof gid) == 0) {
            a->grh.sgid_index = (uint8_t)i;
            return 0;
        }
    }
    return EINVAL;
}
