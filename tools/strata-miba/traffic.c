/* The base configuration of the paper. */
#include "config.h"
#include "traffic.h"

#include "test.h"

void traffic_base(const struct miba *m, const struct miba_case *c, enum pattern pattern, struct traffic *t)
{
    *t = (struct traffic){
        .pattern = pattern,
        .op = c->op,
        .transport = c->transport,
        .size = miba_op_is_atomic(c->op) || !c->size ? 8 : c->size,
        .window = pattern == PATTERN_PING_PONG ? 1 : (uint32_t)m->set.window,
        .segments = 1,
        .max_sge = 1,
        .scatter = 1,
        .max_recv_sge = 1,
        .mtu = device_mtu(&m->dev, &m->set),
        .qps = 1,
        .burst = (uint32_t)m->set.burst,
        .signal_every = 1,
        .list = 1,
        .buffers = m->set.buffers ? (uint32_t)m->set.buffers : 1,
        .memfd = m->set.memfd != 0,
        .stamps = m->set.stamps != 0,
        .sl = (uint8_t)m->set.sl,
        .pkey_index = (uint16_t)m->set.pkey_index,
    };
}

const char *const traffic_variants[] = {"latency", "bandwidth", NULL};

void traffic_of_variant(const struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, c->variant == 0 ? PATTERN_PING_PONG : PATTERN_STREAM, t);
}
