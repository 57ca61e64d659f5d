# shellcheck shell=bash disable=SC2154
# The sections "instructions", "work" and "memory" of openib.sh, which sources this.

# Of callgrind's file: all that was counted less what was spent in calls from elsewhere into the verbs libraries, and what
# that was; then the calls by name. Names are written once, "(7) name", and later "(7)".
own_and_verbs() { # file
    awk '
        function object(text, id) {
            id = text; sub(/\).*/, "", id)
            if (text ~ /\) /) { sub(/^[^ ]* /, "", text); verbs[id] = text ~ /libsofthca|libibverbs/ }
            return id
        }
        function name_of(text, id) {
            id = text; sub(/\).*/, "", id)
            if (text ~ /\) /) { sub(/^[^ ]* /, "", text); names[id] = text }
            return names[id]
        }
        /^ob=/ { here = object(substr($0, 4)); next }
        /^cob=/ { there = object(substr($0, 5)); called = 1; next }
        /^fn=/ { loop = name_of(substr($0, 4)) ~ /^bench_/; next }
        /^cfn=/ { callee = name_of(substr($0, 5)); next }
        /^calls=/ { split($1, c, /[= ]/); getline; if (!called) there = here; called = 0
                    if (verbs[there] && !verbs[here]) { inside += $2; calls[callee] += c[2]; cost[callee] += $2 }
                    next }
        /^[0-9+*-]/ { if (!loop) all += $2 }
        END { print all - inside, inside
              for (f in calls) print f, calls[f], cost[f] }' "$1"
}
counted() { # send|recv|all messages: in the loop over the messages, which lies between two dumps
    local only=(--collect-atstart=no --toggle-collect="bench_$1")
    [ "$1" != all ] || only=() # toggled, it miscounts the calls
    "$build/libtool" --quiet --mode=execute env LD_PRELOAD="$preload" STRATA_MCA_btl=openib,self \
        STRATA_MCA_btl_openib_eager_rdma="$eager" valgrind --tool=callgrind \
        --callgrind-out-file="$work/callgrind.$1" ${only[@]+"${only[@]}"} \
        --dump-before=bench_begin --dump-before=bench_end \
        "$build/bench/instructions" openib "$2" >/dev/null 2>"$work/err" || { cat "$work/err" >&2 && return 1; }
    own_and_verbs "$work/callgrind.$1.2" >"$work/counted.$1"
}
instructions() {
    instructions_of off 400 "send and receive" && instructions_of on 300 "eager RDMA, one way"
}
instructions_of() { # EAGER-RDMA TARGET TITLE
    local part n=3000 eager=$1 target=$2
    if ! command -v valgrind >/dev/null; then echo "bench-openib: no valgrind: instructions are not counted" >&2 && return; fi
    [ -z "${BENCH_GUEST-}" ] || { echo "instructions are counted on softhca" >&2 && return; }
    for part in send recv all; do counted $part $n || return 1; done
    printf '\nInstructions for one 8-byte message on softhca, %s (callgrind, %d messages)\n' "$3" $n
    printf '%-34s%12s%12s\n' "" own "verbs calls"
    awk -v n=$n -v t=$target '
        { part = FILENAME; sub(/.*\./, "", part) }
        FNR == 1 && part == "all" { next }
        FNR == 1 { printf "%-34s%12.1f%12.1f\n", part, $1 / n, $2 / n
                   own += $1 / n; verbs += $2 / n; next }
        part == "all" { calls[$1] = $2; cost[$1] = $3 }
        END { printf "%-34s%12.1f%12.1f  target: own < %d, %s\n", "send and receive", own, verbs, t, own < t ? "met" : "missed"
              print "calls of verbs for a message, and instructions in each:"
              for (f in calls) if (calls[f] * 100 > n) printf "  %-32s%12.2f%12.0f\n", f, calls[f] / n, cost[f] / calls[f] }' \
        "$work/counted.send" "$work/counted.recv" "$work/counted.all"
    echo "where our own are spent (callgrind_annotate):"
    for part in send recv; do
        callgrind_annotate --inclusive=no "$work/callgrind.$part.2" 2>/dev/null | grep -v -e softhca/ -e libc.so |
            awk -v n=$n -v part=$part '$NF ~ /^\[/ && $1 ~ /^[0-9]/ { gsub(/,/, "", $1); name = $(NF - 1); sub(/.*\//, "", name)
                if ($1 / n >= 8) printf "  %-6s%-40s%8.1f\n", part, name, $1 / n }'
    done
}

# ---- work: instructions of a message beside other libraries, where times of short ones are those of the kernel's copy

stepped() { # strata|openmpi|mpich BYTES MESSAGES: "own verbs calls" for one message sent and one received; nothing: it failed
    local who=$1 bytes=$2 n=$3 program=("$build/bench/steps" "$build/bench/turns.$1")
    [ "$who" != strata ] || program=("$build/libtool" --quiet --mode=execute "$build/bench/steps" "$build/bench/turns")
    rm -f "$work"/to?
    mkfifo "$work/to0" "$work/to1"
    launch "$who" 2 "${program[@]}" "$work" "$bytes" "$n" breakpoints || { tail -n 5 "$work/err" >&2 && return; }
    awk -v n="$n" '$1 == "steps" { printf "%.0f %.0f %.2f\n", $2 / n, $3 / n, $4 / n }' "$work/err"
}
work() {
    local n=${MESSAGES:-40} bytes who row
    [ "$(uname -m)" = x86_64 ] || { echo "bench-openib: instructions of others are counted on x86-64" >&2 && return; }
    [ -z "${BENCH_GUEST-}" ] || { echo "instructions are counted on softhca" >&2 && return; }
    "${CC:-gcc}" -O2 -Wall -Wextra -o "$build/bench/steps" "$here/steps.c" || return 1
    printf '\nInstructions for a message sent and one received on softhca, none of them for waiting (%d messages, step by step)\n' "$n"
    printf '%8s%10s%8s%7s%10s%8s%7s%7s%10s%8s%7s%7s  %s\n' bytes Strata verbs calls "Open MPI" verbs calls x MPICH verbs calls x \
        "x: own instructions; target: <1x <1x"
    for bytes in 8 64 512 1024 2048 4096 8192; do
        row=
        for who in strata openmpi mpich; do
            if [ $who = strata ] || [ -x "$build/bench/turns.$who" ]; then row+=$(stepped $who $bytes "$n"); fi
            row+='|'
        done
        awk -v b=$bytes -F'|' '
            function three(text, who,   f, x) {
                if (split(text, f, " ") != 3) { printf "%10s%8s%7s", "-", "-", "-"; if (who) printf "%7s", "-"; return }
                printf "%10d%8d%7.2f", f[1], f[2], f[3]
                if (!who) { mine = f[1]; return }
                x = mine / f[1]; printf "%7.2f", x
                if (!mine || x >= 1) missed = missed (missed ? ", " : "missed: ") who
            }
            { printf "%8d", b; three($1, ""); three($2, "Open MPI"); three($3, "MPICH"); print "  " (missed ? missed : "met") }' <<<"$row"
    done
}

# ---- memory: tests/programs/openib_memory prints what rank 0 has at each stage, in kB

memory_job() { # ranks name SETTING VALUE...
    local n=$1 name=$2
    shift 2
    timeout -k 5 "$limit" "$build/libtool" --quiet --mode=execute strata-run ${softhca[@]+"${softhca[@]}"} -n "$n" \
        --bind-to none --mca btl openib,self "$@" "$build/tests/programs/openib_memory" </dev/null >"$work/$name" 2>"$work/err" || {
        echo "bench-openib: memory of $n ranks failed:" >&2
        tail -n 5 "$work/err" >&2
        return 1
    }
}
memory_row() { # what kB target
    awk -v what="$1" -v kb="$2" -v t="$3" 'BEGIN {
        printf "%-52s%10.1f%10s  %s\n", what, kb, t == "" ? "" : t, t == "" ? "" : kb + 0 <= t + 0 ? "met" : "missed" }'
}
memory() {
    local n=16 kind file
    [ -z "${BENCH_GUEST-}" ] || n=8
    memory_job $n shared || return 1
    memory_job $n own --mca btl_openib_receive_queues P,8k,64,1,16:P,32k,32,1,15 || return 1
    printf '\nMemory of a rank, %s, job of %d ranks, kB (anonymous; device: mapped from it, resident; mem_report)\n' "$where" $n
    printf '%-28s%12s%12s%12s%12s%12s\n' "" anonymous device sum btl_openib "all report"
    for kind in shared own; do
        echo "receive queues $kind:"
        cat "$work/$kind"
    done
    printf '%-52s%10s%10s\n' "" kB target
    memory_row "idle context of btl_openib, by its own report" "$(stage shared "idle context" 4)" ""
    memory_row "first connection, shared receive queues" "$(stage shared "one peer")" 2048
    memory_row "each further connected peer, shared" "$(stage shared "each further")" 48
    memory_row "first connection, queues per peer" "$(stage own "one peer")" ""
    memory_row "each further connected peer, queues per peer" "$(stage own "each further")" ""
    file=$work/world
    soft "$limit" "$build/strata-perf" world --ranks 1000000 --mca btl openib,self --json >"$file" 2>"$work/err" &&
        awk '/private_bytes|resident_bytes"/ { gsub(/[^0-9.]/, "", $2); many = $2 } END { print many }' "$file" >"$work/many"
    soft "$limit" "$build/strata-perf" world --ranks 2 --mca btl openib,self --json >"$file" 2>"$work/err" &&
        awk '/resident_bytes"/ { gsub(/[^0-9.]/, "", $2); few = $2 } END { print few }' "$file" >"$work/few"
    paste -d' ' "$work/many" "$work/few" | awk '{ b = ($1 - $2) / 999998
        printf "%-52s%8.3f B%8d B  %s\n", "each uncontacted peer of a million", b, 8, b <= 8 ? "met" : "missed" }'
}
# A column of what a stage added, else the sum of the device's and anonymous memory; "each further" is per peer.
stage() { # file stage [column]
    awk -v want="$2" -v column="${3:-3}" -F: '$1 ~ want { split($2, f, " "); print f[column] }' "$work/$1"
}
