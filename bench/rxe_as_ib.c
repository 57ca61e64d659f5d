/* Preloaded into Open MPI 4.1's openib BTL, lets its one way to connect (udcm) run over Soft-RoCE: that way refuses an
 * Ethernet link layer. The port then reports InfiniBand and a LID, the last byte of its IPv4 GID; paths and address
 * handles that name such a LID are given the GID instead. For one subnet with a /24 and IPv4, which is what the guest
 * has. Built by openib.sh; only for measuring that program beside ours. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

enum { GID_INDEX = 1 }; /* RoCE v2 with the IPv4 address */

static union ibv_gid subnet; /* the GID of the device that was opened; its last byte is a LID */
static int (*real_query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *out, size_t size)
{
    int rc = real_query_port(c, port, out, size);
    if (rc == 0) {
        out->link_layer = IBV_LINK_LAYER_INFINIBAND;
        out->lid = subnet.raw[15];
        out->sm_lid = 1;
    }
    return rc;
}

static void to_gid(struct ibv_ah_attr *a)
{
    a->is_global = 1;
    a->grh = (struct ibv_global_route){.dgid = subnet, .sgid_index = GID_INDEX, .hop_limit = 64};
    a->grh.dgid.raw[15] = (uint8_t)a->dlid;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *(*real)(struct ibv_device *) = dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1");
    struct ibv_context *c = real ? real(device) : NULL;
    struct verbs_context *v = c ? verbs_get_ctx_op(c, query_port) : NULL;
    if (v && ibv_query_gid(c, 1, GID_INDEX, &subnet) == 0) {
        real_query_port = v->query_port;
        v->query_port = query_port;
    }
    return c;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *(*real)(struct ibv_pd *, struct ibv_ah_attr *) = dlvsym(RTLD_NEXT, "ibv_create_ah", "IBVERBS_1.1");
    struct ibv_ah_attr a = *attr;
    to_gid(&a);
    return real ? real(pd, &a) : NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) = dlvsym(RTLD_NEXT, "ibv_modify_qp", "IBVERBS_1.1");
    struct ibv_qp_attr a = *attr;
    if (mask & IBV_QP_AV)
        to_gid(&a.ah_attr);
    return real ? real(qp, &a, mask) : -1;
}
