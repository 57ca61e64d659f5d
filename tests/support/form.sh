# shellcheck shell=bash
# The two forms of a long test: full, and short, which `./quickstart test` runs. Sourced; STRATA_TEST_FORM says which.

# Prints SHORT in the short form, else FULL: steps, sizes, seconds, the cases of a loop.
form() { # SHORT FULL
    if [ "${STRATA_TEST_FORM-full}" = short ]; then printf '%s\n' "$1"; else printf '%s\n' "$2"; fi
}
# True in the full form: guards what the short form leaves out.
full_form() { [ "${STRATA_TEST_FORM-full}" != short ]; }
# Prints which form runs and how much of the whole it does, with the seed of a random test. Once, near the start.
say_form() { # TEXT...
    printf '%s form: %s\n' "$(form short full)" "$*"
}
