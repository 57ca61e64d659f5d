/* Ports and devices of softhca that go away, addresses that change, several of each. A program of the verbs suite, for
 * softhca alone. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"
#include "control.h"
#include "steps.h"

#include <stdlib.h>
#include <unistd.h>

#define GRH 40u

/* ---- ports and devices that go away ---- */

static void port_down_under_traffic(void)
{
    struct ibv_port_attr port;
    struct pair p;

    PAIR(&p, .timeout = 14, .retry_cnt = 7);
    for (uint64_t i = 0; i < 20; i++)
        recv_post(&p.b, i, 4096 + i * 64, 64);
    for (uint64_t i = 0; i < 20; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 64);
        if (i == 10)
            command("port soft0 1 down");
        op_post(&p.a, &op);
    }
    expect_event(&p.dev, IBV_EVENT_PORT_ERR);
    REQUIRE_OK(ibv_query_port(p.dev.ctx, 1, &port));
    REQUIRE_EQ(port.state, IBV_PORT_DOWN);
    for (uint64_t i = 0; i < 10; i++)
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    cq_expect_none(p.a.send_cq, 100);
    command("port soft0 1 up");
    expect_event(&p.dev, IBV_EVENT_PORT_ACTIVE);
    for (uint64_t i = 0; i < 20; i++) {
        if (i >= 10)
            cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

static void port_down_for_good(void)
{
    struct pair p;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    command("port soft0 1 down");
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

/* A port comes up with another address: it says so, what is sent to the old one is lost, a new connection takes the new
 * one. */
static void another_address(void)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct pair p;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    pair_exchange(&p, 1);
    command("port soft0 1 down");
    expect_event(&p.dev, IBV_EVENT_PORT_ERR);
    command("address soft0 1 3");
    expect_event(&p.dev, p.dev.global ? IBV_EVENT_GID_CHANGE : IBV_EVENT_LID_CHANGE);
    if (!p.dev.global)
        expect_event(&p.dev, IBV_EVENT_CLIENT_REREGISTER);
    command("port soft0 1 up");
    expect_event(&p.dev, IBV_EVENT_PORT_ACTIVE);
    REQUIRE_OK(ibv_query_port(p.dev.ctx, 1, &port));
    REQUIRE_OK(ibv_query_gid(p.dev.ctx, 1, p.dev.gid_index, &gid));
    REQUIRE_EQ(port.lid, p.dev.global ? 0 : p.dev.port.lid + 48);
    REQUIRE_EQ(memcmp(&gid, &p.dev.gid, sizeof gid) != 0, p.dev.global);
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    pair_exchange(&p, 2);
    pair_close(&p);
}

/* Datagrams, to what was the address and to what is. */
static void datagrams_to_another_address(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UD);
    struct end_address was = end_address(&p.b);
    command("address soft0 1 199");
    struct device now;
    device_open(&now);
    struct end_address is = was;
    is.lid = now.port.lid;
    is.gid = now.gid;
    device_close(&now);
    for (uint64_t i = 0; i < 2; i++) {
        struct ibv_ah *ah = end_ah(&p.a, i ? &is : &was);
        recv_post(&p.b, i, 4096 + i * 64, 8 + GRH);
        send_datagram(&p, ah, i);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        if (i)
            cq_expect(p.b.recv_cq, 0, IBV_WC_SUCCESS);
        else
            cq_expect_none(p.b.recv_cq, 20);
        REQUIRE_OK(ibv_destroy_ah(ah));
    }
    pair_close(&p);
}

static void device_removed(void)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct pair p;
    int n;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    command("device soft0 gone");
    expect_event(&p.dev, IBV_EVENT_DEVICE_FATAL);
    REQUIRE_ERR(ibv_query_device(p.dev.ctx, &attr), EIO);
    REQUIRE_ERR(ibv_query_port(p.dev.ctx, 1, &port), EIO);
    for (int kind = 0; kind < 5; kind++) {
        REQUIRE(make(&p.dev, &p.a, kind) == NULL);
        REQUIRE_EQ(errno, EIO);
    }
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    struct ibv_device **list = ibv_get_device_list(&n);
    for (int i = 0; i < n; i++)
        REQUIRE_MSG(strcmp(ibv_get_device_name(list[i]), "soft0") != 0, "soft0 is gone, and listed");
    ibv_free_device_list(list);
    pair_close(&p); /* what there is can be given back */
}

/* ---- several devices and ports: faults_test.sh sets two of each ---- */

#define RAILS 4

/* Each port of each device, with itself and at the same time; when one goes down, the others go on. */
static void rails(void)
{
    struct device d[RAILS];
    struct pair p[RAILS];

    for (int i = 0; i < RAILS; i++) {
        REQUIRE_OK(setenv("VERBS_DEVICE", i / 2 ? "soft1" : "soft0", 1));
        REQUIRE_OK(setenv("VERBS_PORT", i % 2 ? "2" : "1", 1));
        PAIR(&p[i], .timeout = 8, .retry_cnt = 2);
        d[i] = p[i].dev;
        for (int k = 0; k < i; k++)
            REQUIRE_MSG(memcmp(&d[i].gid, &d[k].gid, sizeof d[i].gid) != 0, "rails %d and %d have one GID", i, k);
    }
    for (int i = 0; i < RAILS; i++)
        pair_exchange(&p[i], (uint32_t)i);
    command("port soft1 1 down");
    for (int i = 0; i < RAILS; i++) {
        if (i != 2) {
            pair_exchange(&p[i], 10 + (uint32_t)i);
            continue;
        }
        struct op op = op_make(&p[i].a, IBV_WR_SEND, 1, 0, 64);
        op_post(&p[i].a, &op);
        cq_expect(p[i].a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
        expect_event(&p[i].dev, IBV_EVENT_PORT_ERR);
    }
    event_expect_none(p[0].dev.ctx, 20);
    for (int i = 0; i < RAILS; i++)
        pair_close(&p[i]);
}

/* From one rail to another: device soft0, port 1, to device soft1, port 2. */
static void rails_meet(void)
{
    struct pair p;
    struct device other;

    device_open(&p.dev);
    REQUIRE_OK(setenv("VERBS_DEVICE", "soft1", 1));
    REQUIRE_OK(setenv("VERBS_PORT", "2", 1));
    device_open(&other);
    end_open(&p.a, &p.dev, &(struct end_options){0});
    end_open(&p.b, &other, &(struct end_options){0});
    struct end_address a = end_address(&p.a), b = end_address(&p.b);
    end_connect(&p.a, &b);
    end_connect(&p.b, &a);
    pair_exchange(&p, 1);
    end_close(&p.a);
    end_close(&p.b);
    device_close(&other);
    device_close(&p.dev);
}

static const struct verbs_case cases[] = {
    CASE(port_down_under_traffic),
    CASE(port_down_for_good),
    CASE(another_address),
    CASE(datagrams_to_another_address),
    CASE(device_removed),
    CASE(rails),
    CASE(rails_meet),
};
VERBS_MAIN("ports", cases)
