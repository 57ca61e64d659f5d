"""What regret.py runs: the ways that parameters can force, patterns of traffic, and sets of both that make a page."""
from regret_judge import DEFAULT

# A long message announced and moved at once, from the smallest size on; what a way adds says how.
ASK = {"pml_ob1_eager_limit": "512", "pml_ob1_stream_limit": "0", "pml_ob1_rdma_min": "1"}
STREAM = {"pml_ob1_stream_limit": "16777216", "pml_ob1_rdma_min": "1g"}


def sm_copy(**more):
    return {**ASK, "pml_ob1_rndv": "get", **more}


ANY = {
    "stream": STREAM,
    "announced stream": {"pml_ob1_eager_limit": "512", "pml_ob1_stream_limit": "0", "pml_ob1_rdma_min": "1g"},
    "get": {**ASK, "pml_ob1_rndv": "get"},
    "put": {**ASK, "pml_ob1_rndv": "put"},
}
WAYS = {
    "sm": {
        "stream": STREAM,
        "stream by 8k": {**STREAM, "btl_sm_pipeline_send": "8k"},
        "stream by 32k": {**STREAM, "btl_sm_pipeline_send": "32k", "btl_sm_max_send": "32k"},
        "announced stream": ANY["announced stream"],
        "one gets": sm_copy(btl_sm_single_copy="one_sided"),
        "one puts": {**ASK, "pml_ob1_rndv": "put", "btl_sm_single_copy": "one_sided"},
        "both copy": sm_copy(btl_sm_single_copy="cooperative", btl_sm_coop_min="4k"),
        "both copy by 32k": sm_copy(btl_sm_single_copy="cooperative", btl_sm_coop_min="4k", btl_sm_coop_chunk="32k"),
    },
    "openib": {
        **ANY,
        "split": {**ASK, "pml_ob1_rndv": "split", "pml_ob1_split_min": "1"},
        "get by 256k": {**ASK, "pml_ob1_rndv": "get", "btl_openib_rdma_pipeline": "256k"},
    },
}
# mca_base_tune in its other forms: beside the default, as a peer is, and none of the ways that are forced.
TUNES = {"online": {"mca_base_tune": "online"}, "off": {"mca_base_tune": "off"}}
# Short collectives of more ranks than processors, and two ranks whose neighbours wait: what counts is when a waiting rank
# hands its processor over.
CALLS = ["coll", "--op", "barrier,allreduce", "--mif", "0"]
WAITS = {f"spin {spin}, yield {yields}": {"mca_base_spin": str(spin), "mca_base_yield": str(yields)}
         for spin, yields in ((0, 0), (0, 10), (0, 1000), (2, 100), (20, 100), (200, 100), (2, 1000000))}
WAITING = ("calls-8", "calls-16", "pair-4")
# Pattern: ranks, arguments of strata-perf. `siblings` runs only where a core has two threads.
PATTERNS = {
    "ping-pong": (2, ["latency"]),
    "window": (2, ["bw"]),
    "both": (2, ["bibw"]),
    "ring-4": (4, ["ring"]),
    "ring-8": (8, ["ring"]),
    "cold": (2, ["latency", "--cold"]),
    "siblings": (2, ["latency"]),
    "one-buffer": (2, ["bw", "--one-buffer"]),
    "late": (2, ["bw", "--unexpected"]),
    "calls-8": (8, [*CALLS]),
    "calls-16": (16, [*CALLS]),
    "pair-4": (4, ["latency"]),
}
PEERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}
# slow_machine.c slows calls of memcpy down: btl_sm then copies by nothing else.
SLOW_COPIES = {"btl_sm_movs_min": "0"}
PAIRS = "ping-pong,window,both,cold,one-buffer"
# --set: what is measured together, and its page below docs/measured.
SETS = {
    "sm": {"transports": "sm", "patterns": PAIRS, "page": "regret.md"},
    "openib": {"transports": "openib", "patterns": PAIRS, "page": "regret-openib.md"},
    "self": {"transports": "self", "patterns": "ping-pong,cold", "page": "regret-self.md"},
    "ranks": {"transports": "sm,openib", "patterns": "ring-4,ring-8", "page": "regret-ranks.md"},
    "waiting": {"transports": "sm", "patterns": "calls-8,calls-16,pair-4", "page": "regret-waiting.md"},
    "slow": {
        "transports": "sm",
        "patterns": "ping-pong,window,both",
        "slow": ["copy=3", "copy=10", "vm=3", "vm=10", "wake=10", "vm=never", "page=64k", "page=huge"],
        "page": "regret-slow.md",
    },
    "slow-openib": {
        "transports": "openib",
        "patterns": "ping-pong,window",
        # softhca needs the kernel's copies
        "slow": ["copy=3", "copy=10", "vm=10", "wake=10", "page=64k"],
        "page": "regret-slow-openib.md",
    },
}


def ways_of(transport, pattern):
    return {DEFAULT: {}, **(WAITS if pattern in WAITING else WAYS.get(transport, ANY))}


def patterns_of(transport, wanted):
    """Of those wanted, what a transport has: self is rank 0 alone."""
    return [pattern for pattern in wanted if transport != "self" or pattern in ("ping-pong", "cold")]
