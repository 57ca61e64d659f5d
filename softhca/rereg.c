/* Changing a memory region. Other rights and another domain keep the keys, as adapters do: peers hold them. Other
 * memory is registered anew, under the same struct. */
#include "hca.h"

int hca_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, unsigned access)
{
    const bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) || (moves && (!addr || !length)) ||
        ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->context)))
        return IBV_REREG_MR_ERR_INPUT;
    struct hca_mr_own *own = (struct hca_mr_own *)mr;
    if (!(flags & IBV_REREG_MR_CHANGE_PD))
        pd = mr->pd;
    if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
        access = own->access;
    if (!moves)
        return hca_mr_allow(mr, pd, access) ? IBV_REREG_MR_ERR_CMD : 0;
    struct ibv_mr *made = hca_reg_mr(pd, addr, length, (uintptr_t)addr, access);
    if (!made)
        return IBV_REREG_MR_ERR_CMD;
    /* The program keeps its struct, which gets the new region's slot and keys; the old region goes with the other. */
    struct hca_mr_own *other = (struct hca_mr_own *)made;
    pthread_mutex_lock(&hca.lock);
    const struct hca_mr_own old = *own;
    *own = *other;
    *other = old;
    hca.mr[own->slot] = own;
    hca.mr[other->slot] = other;
    pthread_mutex_unlock(&hca.lock);
    (void)hca_dereg_mr(&other->ibv);
    return 0;
}
