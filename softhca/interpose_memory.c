/* Protection domains, memory regions, address handles. */
#include "interpose.h"

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    if (hca_is_ours(context))
        return hca_alloc_pd(context);
    __typeof__(&ibv_alloc_pd) real = REAL(ibv_alloc_pd, V1_1);
    return real ? real(context) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    if (hca_is_ours(pd->context))
        return hca_dealloc_pd(pd);
    __typeof__(&ibv_dealloc_pd) real = REAL(ibv_dealloc_pd, V1_1);
    return real ? real(pd) : ENOSYS;
}

/* ---- memory regions ---- */

/* Flags of the optional range ask for what a device may leave out. */
static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return hca_reg_mr(pd, addr, length, iova, access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    if (hca_is_ours(pd->context))
        return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
    __typeof__(&ibv_reg_mr) real = REAL(ibv_reg_mr, V1_1);
    return real ? real(pd, addr, length, access) : hca_unsupported(ENOSYS);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    if (hca_is_ours(pd->context))
        return reg(pd, addr, length, iova, (unsigned)access);
    __typeof__(&ibv_reg_mr_iova) real = REAL(ibv_reg_mr_iova, V1_7);
    return real ? real(pd, addr, length, iova, access) : hca_unsupported(ENOSYS);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    if (hca_is_ours(pd->context))
        return reg(pd, addr, length, iova, access);
    __typeof__(&ibv_reg_mr_iova2) real = REAL(ibv_reg_mr_iova2, V1_8);
    return real ? real(pd, addr, length, iova, access) : hca_unsupported(ENOSYS);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access)
{
    if (hca_is_ours(pd->context))
        return hca_unsupported(EOPNOTSUPP);
    __typeof__(&ibv_reg_dmabuf_mr) real = REAL(ibv_reg_dmabuf_mr, V1_12);
    return real ? real(pd, offset, length, iova, fd, access) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    if (hca_is_ours(mr->context))
        return hca_rereg_mr(mr, flags, pd, addr, length, (unsigned)access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE);
    if ((flags & IBV_REREG_MR_CHANGE_PD) && pd && hca_is_ours(pd->context))
        return IBV_REREG_MR_ERR_INPUT;
    __typeof__(&ibv_rereg_mr) real = REAL(ibv_rereg_mr, V1_1);
    return real ? real(mr, flags, pd, addr, length, access) : IBV_REREG_MR_ERR_INPUT;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    if (hca_is_ours(mr->context))
        return hca_dereg_mr(mr);
    __typeof__(&ibv_dereg_mr) real = REAL(ibv_dereg_mr, V1_1);
    return real ? real(mr) : ENOSYS;
}

/* ---- what other processes of the kernel's devices share; there is no such thing for ours ---- */

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    __typeof__(&ibv_import_device) real = REAL(ibv_import_device, V1_10);
    return real ? real(cmd_fd) : hca_unsupported(ENOSYS);
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    if (hca_is_ours(context))
        return hca_unsupported(EOPNOTSUPP);
    __typeof__(&ibv_import_pd) real = REAL(ibv_import_pd, V1_10);
    return real ? real(context, handle) : hca_unsupported(ENOSYS);
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    __typeof__(&ibv_unimport_pd) real = hca_is_ours(pd->context) ? NULL : REAL(ibv_unimport_pd, V1_10);
    if (real)
        real(pd);
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    if (hca_is_ours(pd->context))
        return hca_unsupported(EOPNOTSUPP);
    __typeof__(&ibv_import_mr) real = REAL(ibv_import_mr, V1_10);
    return real ? real(pd, handle) : hca_unsupported(ENOSYS);
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    __typeof__(&ibv_unimport_mr) real = hca_is_ours(mr->context) ? NULL : REAL(ibv_unimport_mr, V1_10);
    if (real)
        real(mr);
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    if (hca_is_ours(context))
        return hca_unsupported(EOPNOTSUPP);
    __typeof__(&ibv_import_dm) real = REAL(ibv_import_dm, V1_13);
    return real ? real(context, handle) : hca_unsupported(ENOSYS);
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    __typeof__(&ibv_unimport_dm) real = hca_is_ours(dm->context) ? NULL : REAL(ibv_unimport_dm, V1_13);
    if (real)
        real(dm);
}

/* ---- address handles ---- */

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    if (hca_is_ours(pd->context))
        return hca_create_ah(pd, attr);
    __typeof__(&ibv_create_ah) real = REAL(ibv_create_ah, V1_1);
    return real ? real(pd, attr) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                               struct ibv_ah_attr *attr)
{
    if (hca_is_ours(context))
        return hca_minus_one(hca_init_ah_from_wc(context, port, wc, grh, attr));
    __typeof__(&ibv_init_ah_from_wc) real = REAL(ibv_init_ah_from_wc, V1_1);
    return real ? real(context, port, wc, grh, attr) : hca_minus_one(ENOSYS);
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    if (hca_is_ours(pd->context)) {
        struct ibv_ah_attr attr;
        const int error = hca_init_ah_from_wc(pd->context, port, wc, grh, &attr);
        return error ? hca_unsupported(error) : hca_create_ah(pd, &attr);
    }
    __typeof__(&ibv_create_ah_from_wc) real = REAL(ibv_create_ah_from_wc, V1_1);
    return real ? real(pd, wc, grh, port) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    if (hca_is_ours(ah->context))
        return hca_destroy_ah(ah);
    __typeof__(&ibv_destroy_ah) real = REAL(ibv_destroy_ah, V1_1);
    return real ? real(ah) : ENOSYS;
}
