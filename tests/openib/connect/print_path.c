/* For LD_PRELOAD, before softhca where that is used: what the device says of a connected queue pair goes to stderr when
 * it has been given the address of its peer, `path: service level 3, gid_index 1, to ::ffff:10.77.0.10`, and when it
 * can send, `pair: mtu 1024, pkey_index 0, rnr_timer 10, timeout 16, retry_count 3`. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

__attribute__((visibility("default"))) int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) =
        (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int))dlsym(RTLD_NEXT, "ibv_modify_qp");
    struct ibv_qp_attr now = {0};
    struct ibv_qp_init_attr init = {0};
    char gid[INET6_ADDRSTRLEN] = "";
    int rc = real ? real(qp, attr, mask) : ENOSYS;

    if (rc != 0 || qp->qp_type != IBV_QPT_RC || !(mask & (IBV_QP_AV | IBV_QP_TIMEOUT)) ||
        ibv_query_qp(qp, &now, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT, &init) != 0)
        return rc;
    inet_ntop(AF_INET6, now.ah_attr.grh.dgid.raw, gid, sizeof gid);
    if (mask & IBV_QP_AV)
        fprintf(stderr, "path: service level %u, gid_index %u, to %s\n", now.ah_attr.sl, now.ah_attr.grh.sgid_index,
                gid);
    else
        fprintf(stderr, "pair: mtu %u, pkey_index %u, rnr_timer %u, timeout %u, retry_count %u\n", 128u << now.path_mtu,
                now.pkey_index, now.min_rnr_timer, now.timeout, now.retry_cnt);
    return 0;
}
