# shellcheck shell=bash
# The two forms of a test: full, and short, which `./quickstart test` runs. Sourced. STRATA_TEST_FORM says which; without it a long or
# guest test is run in full, a quick one in the short form.

# Programs and scripts that a test starts take its form, too.
case $0 in
*_long_test.sh | *_guest_test.sh) export STRATA_TEST_FORM="${STRATA_TEST_FORM:-full}" ;;
*_test.sh) export STRATA_TEST_FORM="${STRATA_TEST_FORM:-short}" ;;
esac

full_form() { # Guards what the short form leaves out.
    case ${STRATA_TEST_FORM-} in
    short) return 1 ;;
    full) return 0 ;;
    *) case $0 in *_long_test.sh | *_guest_test.sh) return 0 ;; *) return 1 ;; esac ;;
    esac
}

# Prints SHORT in the short form, else FULL: steps, sizes, seconds, the cases of a loop.
form() { # SHORT FULL
    if full_form; then printf '%s\n' "$2"; else printf '%s\n' "$1"; fi
}
# Prints which form runs and how much of the whole it does, with the seed of a random test. Once, near the start.
say_form() { # TEXT...
    printf '%s form: %s\n' "$(form short full)" "$*"
}
