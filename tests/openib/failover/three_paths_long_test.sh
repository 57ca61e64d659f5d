#!/bin/bash
# Both ends lose ports at once, each another one, in the middle of long and short messages, and get them back: with a path left
# between them, or with none for a while. No message is lost or delivered twice.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "two of three losses" "three losses of two ports")"
snapshot
export SOFTHCA_FABRIC=openib-paths-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
ports() { # DIRECTION RANK:DEVICE...: of all of them, as nearly at once as possible
    local way=$1 at
    shift
    for at; do fault "${ranks[${at%:*}]}" "port soft${at#*:} 1 $way"; done
}
both_lost() { # PATHS: the two ends together have lost the first and the second path, and each end knows of both
    said 2 "path 0 of $1 to rank [01] by openib failed"
    said 2 "path 1 of $1 to rank [01] by openib failed"
}
retry=(--mca pml_ob1_path_retry_ms 100)
works='works again'

# ---- of three paths one is left
export SOFTHCA_DEVICES=3
begin "${retry[@]}"
ports down 0:0 1:1
both_lost 3
ports up 0:0 1:1
said 2 "path 0 of 3 to rank [01] $works"
said 2 "path 1 of 3 to rank [01] $works"
enough
failed_at 2

# ---- of two paths none is left, until a port comes back
export SOFTHCA_DEVICES=2
begin "${retry[@]}"
ports down 0:0 1:1
both_lost 2
sleep "$(form 0.3 1)" # without a path; longer on a busy machine, which is as good
ports up 1:1
said 2 "path 1 of 2 to rank [01] $works"
ports up 0:0
said 2 "path 0 of 2 to rank [01] $works"
enough
failed_at 2

# ---- one end has no port, and gets both back
full_form || finish
begin "${retry[@]}"
ports down 0:0 0:1
both_lost 2
ports up 0:1 0:0
said 2 "path 0 of 2 to rank [01] $works"
enough
failed_at 2
finish
