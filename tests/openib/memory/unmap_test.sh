#!/bin/bash
# Memory goes away at random while it is sent by RDMA over softhca, in four threads of two ranks.
. "$STRATA_SOURCE/tests/openib/memory/registration_lib.sh"
# As it comes: registrations are kept where something tells when memory goes away.
steps 0 10000 20
both '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations'
# Kept, and nothing tells: it must show, here as softhca's report of pages that are gone, within as many steps, however slow they are.
steps nonzero 10000 600 STRATA_MCA_rcache=tree STRATA_MCA_memory="$blind"
says 'registered memory was used after it had been unmapped'
finish
