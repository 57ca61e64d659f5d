/* For LD_PRELOAD, before softhca where that is used: whenever a queue pair has been given the address of its peer,
 * stderr gets what the device says of it then: `path: service level 3, gid_index 1, to ::ffff:10.77.0.10`. */
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

    if (rc != 0 || !(mask & IBV_QP_AV) || ibv_query_qp(qp, &now, IBV_QP_AV, &init) != 0)
        return rc;
    inet_ntop(AF_INET6, now.ah_attr.grh.dgid.raw, gid, sizeof gid);
    fprintf(stderr, "path: service level %u, gid_index %u, to %s\n", now.ah_attr.sl, now.ah_attr.grh.sgid_index, gid);
    return 0;
}
