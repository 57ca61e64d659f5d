/* From which length on a message goes by which protocol: the policy of this PML, out of what the transport suggests and
 * the user has set. choose.h applies it. */
#ifndef OB1_THRESHOLDS_H
#define OB1_THRESHOLDS_H

#include <strata/sdk/btl_rdma.h>

struct ob1;
struct ob1_peer;

/* Sets eager_limit, stream_limit and zcopy_min of a connected peer. */
void ob1_peer_limits(struct ob1 *pml, struct ob1_peer *peer);
/* Smallest message by get or put, bytes. */
size_t ob1_rdma_min(const struct ob1 *pml, const struct st_btl *btl);
/* Smallest message of which one half is put and the other got, bytes; 0: none. */
size_t ob1_split_min(const struct ob1 *pml, const struct st_btl *btl);

#endif
