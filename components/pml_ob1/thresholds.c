/* Thresholds: see thresholds.h. */
#include "thresholds.h"
#include <strata/sdk/btl_hints.h>
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "wire.h"

#define TINY 64u /* payload that fits an ob1_msg */

void ob1_peer_limits(struct ob1 *pml, struct ob1_peer *peer)
{
    const struct ob1_config *config = &pml->config;
    const struct st_btl *btl = ob1_way(peer, 0)->btl; /* a lane copies what it sends */
    uint64_t stream = config->stream_limit >= 0 ? (uint64_t)config->stream_limit : btl->stream_limit;

    peer->eager_limit = config->eager_limit ? (uint32_t)config->eager_limit : btl->eager_limit;
    if (peer->eager_limit > btl->max_send)
        peer->eager_limit = btl->max_send;
    peer->zcopy_min = btl->hints->send_zcopy && btl->zcopy_min ? btl->zcopy_min : UINT32_MAX;
    peer->stream_limit = stream > OB1_STREAM_MAX ? OB1_STREAM_MAX : (uint32_t)stream;
    if (!peer->announce)
        return;
    peer->stream_limit = 0;
    if (peer->eager_limit > TINY)
        peer->eager_limit = TINY;
}

size_t ob1_rdma_min(const struct ob1 *pml, const struct st_btl *btl)
{
    return pml->config.rdma_min ? pml->config.rdma_min : btl->rdma_min;
}

size_t ob1_split_min(const struct ob1 *pml, const struct st_btl *btl)
{
    return pml->config.split_min ? pml->config.split_min : btl->split_min;
}
