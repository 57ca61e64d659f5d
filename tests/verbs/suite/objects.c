/* Life of objects: what is in use is not destroyed, what was destroyed can be made again, queries make sense.
 * IBA 11.2 (destroy: "resource in use"); man ibv_dealloc_pd, ibv_destroy_cq, ibv_query_device, ibv_query_port,
 * ibv_query_gid, ibv_query_pkey. */
#include <stdlib.h>
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

static void busy_domain(void)
{
    struct device d;
    device_open(&d);
    struct ibv_pd *pd = ibv_alloc_pd(d.ctx);
    REQUIRE(pd && pd->context == d.ctx);
    struct memory m;
    memory_make(&m, pd, 4096, ACCESS_ALL);
    REQUIRE_ERR(ibv_dealloc_pd(pd), EBUSY);
    m.p[0] = 1;
    memory_free(&m);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    REQUIRE(cq && qp);
    REQUIRE_ERR(ibv_dealloc_pd(pd), EBUSY);
    REQUIRE_OK(ibv_destroy_qp(qp));
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
    REQUIRE(srq != NULL);
    REQUIRE_ERR(ibv_dealloc_pd(pd), EBUSY);
    REQUIRE_OK(ibv_destroy_srq(srq));
    REQUIRE_OK(ibv_destroy_cq(cq));
    REQUIRE_OK(ibv_dealloc_pd(pd));
    device_close(&d);
}

static void busy_domain_of_address_handle(void)
{
    struct device d;
    device_open(&d);
    struct ibv_pd *pd = ibv_alloc_pd(d.ctx);
    REQUIRE(pd != NULL);
    struct end_address to = {.lid = d.port.lid, .gid = d.gid};
    struct ibv_ah_attr av;
    address_vector(&d, &to, &av);
    struct ibv_ah *ah = ibv_create_ah(pd, &av);
    REQUIRE(ah && ah->pd == pd);
    REQUIRE_ERR(ibv_dealloc_pd(pd), EBUSY);
    REQUIRE_OK(ibv_destroy_ah(ah));
    REQUIRE_OK(ibv_dealloc_pd(pd));
    device_close(&d);
}

/* A completion queue with queue pairs stays, and works on. */
static void busy_completion_queue(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    REQUIRE_ERR(ibv_destroy_cq(p.a.send_cq), EBUSY);
    REQUIRE_ERR(ibv_destroy_cq(p.b.recv_cq), EBUSY);
    pair_exchange(&p, 1);
    pair_close(&p);
}

static void busy_srq(void)
{
    struct device d;
    struct end e;
    device_open(&d);
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(d.pd, &init);
    REQUIRE(srq != NULL);
    end_open(&e, &d, &(struct end_options){.srq = srq});
    REQUIRE_ERR(ibv_destroy_srq(srq), EBUSY);
    end_close(&e);
    REQUIRE_OK(ibv_destroy_srq(srq));
    device_close(&d);
}

static void busy_channel(void)
{
    struct device d;
    device_open(&d);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(d.ctx);
    REQUIRE(channel != NULL);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 4, NULL, channel, 0);
    REQUIRE(cq && cq->channel == channel);
    REQUIRE_ERR(ibv_destroy_comp_channel(channel), EBUSY);
    REQUIRE_OK(ibv_destroy_cq(cq));
    REQUIRE_OK(ibv_destroy_comp_channel(channel));
    device_close(&d);
}

/* Nothing is used up by making and destroying. */
static void made_again_and_again(void)
{
    struct device d;
    for (int round = 0; round < 5; round++) {
        device_open(&d);
        for (int i = 0; i < 40; i++) {
            struct end e;
            end_open(&e, &d, &(struct end_options){.memory = 4096});
            REQUIRE_OK(end_to_init(&e, 0));
            recv_post(&e, 1, 0, 8);
            end_close(&e);
        }
        device_close(&d);
    }
}

static void numbers_are_distinct(void)
{
    enum { N = 50 };
    struct device d;
    static struct end e[N];
    device_open(&d);
    for (int i = 0; i < N; i++) {
        end_open(&e[i], &d, &(struct end_options){.memory = 4096});
        REQUIRE(e[i].qp->qp_num > 1 && e[i].qp->qp_num < 1 << 24);
        for (int k = 0; k < i; k++) {
            REQUIRE(e[i].qp->qp_num != e[k].qp->qp_num);
            REQUIRE(e[i].mem.mr->lkey != e[k].mem.mr->lkey && e[i].mem.mr->rkey != e[k].mem.mr->rkey);
        }
    }
    for (int i = 0; i < N; i++)
        end_close(&e[i]);
    device_close(&d);
}

static void device_query(void)
{
    struct device d;
    device_open(&d);
    struct ibv_device_attr *a = &d.attr;
    REQUIRE(a->phys_port_cnt >= 1 && d.port_num <= a->phys_port_cnt);
    REQUIRE(a->max_qp > 0 && a->max_qp_wr >= 64 && a->max_sge >= 2 && a->max_cq > 0 && a->max_cqe >= 256);
    REQUIRE(a->max_mr > 0 && a->max_pd > 0 && a->max_ah > 0 && a->max_mr_size >= 1 << 20);
    REQUIRE(a->max_qp_rd_atom >= 4 && a->max_qp_init_rd_atom >= 4);
    REQUIRE(a->max_srq > 0 && a->max_srq_wr >= 64 && a->max_srq_sge >= 1);
    REQUIRE(a->page_size_cap & 4096);
    REQUIRE(a->atomic_cap == IBV_ATOMIC_HCA || a->atomic_cap == IBV_ATOMIC_GLOB);
    REQUIRE(memchr(a->fw_ver, 0, sizeof a->fw_ver) != NULL);
    REQUIRE(a->node_guid != 0);
    REQUIRE(ibv_get_device_guid(d.ctx->device) == a->node_guid);
    REQUIRE_EQ(d.ctx->device->transport_type, IBV_TRANSPORT_IB);
    REQUIRE_EQ(d.ctx->device->node_type, IBV_NODE_CA);
    struct ibv_device_attr_ex ex;
    REQUIRE_OK(ibv_query_device_ex(d.ctx, NULL, &ex));
    REQUIRE_EQ(ex.orig_attr.max_qp, a->max_qp);
    REQUIRE_EQ(ex.orig_attr.max_cqe, a->max_cqe);
    device_close(&d);
}

static void port_query(void)
{
    struct device d;
    struct ibv_port_attr a;
    device_open(&d);
    REQUIRE_EQ(d.port.state, IBV_PORT_ACTIVE);
    REQUIRE(d.port.active_mtu >= IBV_MTU_256 && d.port.active_mtu <= d.port.max_mtu && d.port.max_mtu <= IBV_MTU_4096);
    REQUIRE(d.port.gid_tbl_len > d.gid_index && d.port.pkey_tbl_len >= 1 && d.port.max_msg_sz >= 1 << 20);
    REQUIRE(d.port.link_layer == IBV_LINK_LAYER_ETHERNET || d.port.link_layer == IBV_LINK_LAYER_INFINIBAND);
    if (d.port.link_layer == IBV_LINK_LAYER_INFINIBAND)
        REQUIRE(d.port.lid > 0 && d.port.lid < 0xc000);
    REQUIRE_FAILS(ibv_query_port(d.ctx, 0, &a));
    REQUIRE_FAILS(ibv_query_port(d.ctx, (uint8_t)(d.attr.phys_port_cnt + 1), &a));
    device_close(&d);
}

static void gid_and_pkey_query(void)
{
    struct device d;
    static const union ibv_gid zero;
    union ibv_gid gid;
    __be16 pkey = 0;
    device_open(&d);
    REQUIRE(memcmp(&d.gid, &zero, sizeof zero));
    REQUIRE_FAILS(ibv_query_gid(d.ctx, d.port_num, d.port.gid_tbl_len, &gid));
    REQUIRE_OK(ibv_query_pkey(d.ctx, d.port_num, 0, &pkey));
    REQUIRE_EQ(pkey, 0xffff);
    REQUIRE_FAILS(ibv_query_pkey(d.ctx, d.port_num, d.port.pkey_tbl_len, &pkey));
    device_close(&d);
}

/* The list is the same each time, ends with NULL, and a device of it can be opened more than once. */
static void device_list(void)
{
    int n = -1, again = -1;
    struct ibv_device **list = ibv_get_device_list(&n), **second = ibv_get_device_list(&again);
    REQUIRE(list && second && n >= 1 && n == again && list[n] == NULL);
    for (int i = 0; i < n; i++) {
        REQUIRE(!strcmp(ibv_get_device_name(list[i]), ibv_get_device_name(second[i])));
        REQUIRE(strlen(ibv_get_device_name(list[i])) > 0);
        for (int k = 0; k < i; k++)
            REQUIRE(strcmp(ibv_get_device_name(list[i]), ibv_get_device_name(list[k])));
    }
    struct ibv_context *one = ibv_open_device(list[0]), *two = ibv_open_device(list[0]);
    REQUIRE(one && two && one != two && one->device == list[0]);
    ibv_free_device_list(list);
    ibv_free_device_list(second);
    REQUIRE(strlen(ibv_get_device_name(one->device)) > 0); /* an open device outlives the list */
    REQUIRE_OK(ibv_close_device(one));
    REQUIRE_OK(ibv_close_device(two));
}

/* libibverbs returns the start of a block of memory, and programs (qperf) give it to free(). */
static void device_list_is_a_block(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    REQUIRE(list && list[0]);
    free(list);
}

static const struct verbs_case cases[] = {
    CASE(busy_domain),
    CASE(busy_domain_of_address_handle),
    CASE(busy_completion_queue),
    CASE(busy_srq),
    CASE(busy_channel),
    CASE(made_again_and_again),
    CASE(numbers_are_distinct),
    CASE(device_query),
    CASE(port_query),
    CASE(gid_and_pkey_query),
    CASE(device_list),
    CASE(device_list_is_a_block),
};
VERBS_MAIN("objects", cases)
