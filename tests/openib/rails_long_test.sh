#!/bin/bash
# Two devices, of which one at a time loses its port in the middle of long and short messages and gets it back: nothing is
# lost. When both have lost it, every rank ends with an error that names the peer.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_DEVICES=2 SOFTHCA_FABRIC=openib-rails-$$
. "$STRATA_SOURCE/tests/openib/rails_lib.sh"

# ---- nothing happens to it: both devices carry messages
begin
enough
failed_at 0

# ---- the first device's port, then, when that works again, the second's; at either rank
begin --mca pml_ob1_path_retry_ms 200
fault "${ranks[0]}" 'port soft0 1 down'
said 2 'path 0 of 2 to rank [01] by openib failed'
fault "${ranks[0]}" 'port soft0 1 up'
said 2 'path 0 of 2 to rank [01] works again'
fault "${ranks[1]}" 'port soft1 1 down'
said 2 'path 1 of 2 to rank [01] by openib failed'
fault "${ranks[1]}" 'port soft1 1 up'
said 2 'path 1 of 2 to rank [01] works again'
enough
failed_at 2

# ---- a device is removed for good
begin
fault "${ranks[1]}" 'device soft0 gone'
said 2 'path 0 of 2 to rank [01] by openib failed'
enough
failed_at 2

# ---- no port is left, and none comes back
begin --mca pml_ob1_path_wait_ms 2000
fault "${ranks[0]}" 'port soft0 1 down'
fault "${ranks[0]}" 'port soft1 1 down'
end nonzero
says 'rank [01] on host .* failed: the peer failed: transport retry.*; none of its paths has come back'
finish
