# shellcheck shell=bash
# A test that is started outside of a guest boots one for itself, with the options of its line `# guest: OPTIONS`; batch.sh runs
# many in one boot. Sourced first: what follows happens in the guest.
if [ -z "${STRATA_IN_GUEST-}" ]; then
    eval "set -- $(sed -n 's/^# guest: *//p' "$0")"
    exec "$STRATA_SOURCE/tests/guest/run" "$@" -x STRATA_IN_GUEST=1 bash "$0"
fi
export PATH=$PATH:/usr/sbin:/sbin
