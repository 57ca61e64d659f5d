/* From which length on a message goes by which protocol over a path: what is derived from the path's facts, the
 * parameters of this PML put in its place. choose.h applies it. */
#ifndef OB1_THRESHOLDS_H
#define OB1_THRESHOLDS_H

#include <strata/sdk/thresholds.h>

struct ob1;
struct ob1_peer;

void ob1_thresholds(const struct ob1 *pml, const struct st_btl_endpoint *ep, struct st_thresholds *out);
/* Sets eager_limit, stream_limit, zcopy_min, alone_min and the table of ways of a connected peer: when its paths, what
 * they can do, or what it asks for have changed. */
void ob1_peer_limits(struct ob1 *pml, struct ob1_peer *peer);

#endif
