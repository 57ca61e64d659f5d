# shellcheck shell=bash
# Shared by quickstart and config/ci/*.sh; sourced from the top of the tree.
top=$(pwd)
export JOBS=${JOBS:-$(nproc)}
TEST_JOBS=${TEST_JOBS:-$((JOBS + 1))} # tests at a time
BUILD=$top/build
LOGS=$BUILD/logs
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# ---- packages ---------------------------------------------------------------------------------------------

package_list() { # build|test|all: names from config/packages.txt, one a line
    awk -v group="$1" '!/^#/ && NF && (group == "all" || $2 == group) { print $1 }' config/packages.txt
}

missing_packages() { # group
    local p
    for p in $(package_list "$1"); do
        # shellcheck disable=SC2016 # the format is dpkg-query's
        case $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null) in
        installed) ;;
        *) printf '%s ' "$p" ;;
        esac
    done
}

# Installs what is missing of a group with apt; exit status 2 with the line to type when that is impossible.
ensure_packages() { # build|all
    local missing sudo=
    [ -z "${NO_PACKAGES-}" ] || return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        echo "quickstart: no apt on this machine. Install the equivalents of these Debian packages, then run again" >&2
        echo "with NO_PACKAGES=1 in the environment:" >&2
        package_list "$1" | tr '\n' ' ' >&2
        echo >&2
        exit 2
    fi
    missing=$(missing_packages "$1")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            sudo=sudo
            sudo -v || exit 2 # asks for the password here, where it can
        else
            echo "quickstart: packages are missing and this user is not root. As root, type:" >&2
            echo "  apt-get update && apt-get install -y --no-install-recommends $missing" >&2
            exit 2
        fi
    fi
    echo "Installing $(wc -w <<<"$missing") packages: $missing"
    # shellcheck disable=SC2086 # the list is meant to be split
    if ! step "apt-get update" $sudo apt-get update || ! step "apt-get install" \
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; then
        echo "quickstart: apt could not install the packages; the log above says why" >&2
        exit 2
    fi
}

# ---- steps --------------------------------------------------------------------------------------------------

CHILD= # a timeout(1), which ends its command within --kill-after
trap '[ -z "$CHILD" ] || { kill "$CHILD" 2>/dev/null; wait "$CHILD"; }; exit 130' INT TERM

# Runs a command with its output in a log. Prints a progress line every few seconds, the log's lines that start with
# "RESULT: " when it succeeds, its last TAIL lines when it fails. STEP_LIMIT seconds end it.
step() { # title command...
    local title=$1 start=$SECONDS next=2 status=0 elapsed
    shift
    mkdir -p "$LOGS"
    LOG=$LOGS/$(tr -cs 'a-zA-Z0-9\n' _ <<<"$title").log
    timeout --kill-after=10 "${STEP_LIMIT:-2400}" "$@" >"$LOG" 2>&1 </dev/null &
    CHILD=$!
    while kill -0 "$CHILD" 2>/dev/null; do
        elapsed=$((SECONDS - start))
        if [ "$elapsed" -ge "$next" ]; then
            printf '  ... %4d s  %s: %s\n' "$elapsed" "$title" "$(tail -n 1 "$LOG" | tr -d '\r' | cut -c 1-80)"
            next=$((elapsed + 4))
        fi
        sleep 0.2
    done
    wait "$CHILD" || status=$?
    CHILD=
    elapsed=$((SECONDS - start))
    case $status in
    0)
        printf 'ok    %4d s  %s\n' "$elapsed" "$title"
        sed -n 's/^RESULT: /             /p' "$LOG" ;;
    77) printf 'SKIP  %4d s  %s: %s\n' "$elapsed" "$title" "$(tail -n 1 "$LOG")" ;;
    *)
        [ "$status" -ne 124 ] || echo "(ended after ${STEP_LIMIT:-2400} s)" >>"$LOG"
        printf 'FAIL  %4d s  %s (status %d); the end of %s:\n' "$elapsed" "$title" "$status" "$LOG"
        tail -n "${TAIL:-50}" "$LOG" | sed 's/^/    | /' ;;
    esac
    return "$status"
}
