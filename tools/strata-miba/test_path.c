/* Attributes of the path: MTU, service level, partition key. */
#include "config.h"
#include "tests.h"

static enum miba_status shape_mtu(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    if (c->x < 256 || c->x > 4096 || (c->x & (c->x - 1)))
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "there is no MTU of %llu bytes", (unsigned long long)c->x);
    if (c->x > 128u << m->dev.port.active_mtu)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "the port's MTU is %u", 128u << m->dev.port.active_mtu);
    t->mtu = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_service(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_PING_PONG, t);
    if (c->variant == 0) {
        if (c->x > 15)
            return miba_fail(&m->why, MIBA_UNSUPPORTED, "service levels are 0 to 15");
        t->sl = (uint8_t)c->x;
        return MIBA_OK;
    }
    uint16_t key = 0;
    if (c->x >= m->dev.port.pkey_tbl_len || ibv_query_pkey(m->dev.ctx, m->dev.port_number, (int)c->x, &key) || key == 0)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "the port has no partition key %llu", (unsigned long long)c->x);
    t->pkey_index = (uint16_t)c->x;
    return MIBA_OK;
}

static const uint64_t mtus[] = {256, 512, 1024, 2048, 4096};
static const uint64_t sizes[] = {4096, 8, 512, 65536};
static const uint64_t short_sizes[] = {8};
static const uint64_t levels[] = {0, 1, 2, 4, 8, 15};
static const char *const kinds[] = {"sl", "pkey", NULL};

const struct miba_test test_mtu = {
    .name = "mtu",
    .paper = "Figure 10",
    .isolates = "Messages over paths of this MTU: the cost of a packet. Times are of one message.",
    .x_name = "mtu",
    OF_ATTRIBUTE(mtus, sizes),
    .transports = BIT(RC) | BIT(UC),
    .shape = shape_mtu,
};

const struct miba_test test_service = {
    .name = "service",
    .paper = "beyond the paper",
    .isolates = "Latency by service level (sl) and by index of the partition key (pkey): on a quiet path there is no "
                "difference.",
    .x_name = "index",
    VALUES(levels),
    SIZES(short_sizes),
    .variants = kinds,
    .ops = BIT(OP_SEND),
    .transports = EVERY_TRANSPORT,
    .values_fixed = true,
    .shape = shape_service,
};
