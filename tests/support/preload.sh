# shellcheck shell=bash
# softhca's library for LD_PRELOAD: sets `library`, and `first`, a sanitizer's own library and a colon, which has to come before it.
# Sourced.
# shellcheck disable=SC2034 # for those that source this
library=$STRATA_BUILD/softhca/.libs/libsofthca.so
first=
for name in asan tsan; do
    case $name,${SANITIZER_FLAGS-} in
    asan,*address* | tsan,*thread*) first=$("${CC:-gcc}" -print-file-name="lib$name.so"): ;;
    esac
done

# Whether btl_openib can run over softhca in this build.
openib_on_softhca() {
    [ -e "$library" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1
}
