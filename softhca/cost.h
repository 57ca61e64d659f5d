/* Known costs, by SOFTHCA_COST, so that what measures a device can be tested: each is spent by spinning, and counted.
 * Who spends one is the process whose environment asks for it: calls cost their caller, and a message costs its sender,
 * which carries it out. */
#ifndef SOFTHCA_COST_H
#define SOFTHCA_COST_H

#include "cost_keys.h"
#include "hca.h"

/* What the environment asks for. Written once, before the first device is open. */
struct hca_cost {
    uint32_t set; /* bit per enum hca_cost_key */
    bool data;    /* one of those of carrying out a send is set */
    uint64_t ps[HCA_COSTS];
    uint32_t cache; /* SOFTHCA_COST_CACHE: entries of the translation cache */
};
HCA_INTERNAL extern struct hca_cost hca_cost;
static inline bool hca_cost_is(enum hca_cost_key key)
{
    return hca_cost.set >> key & 1u;
}

/* cost.c: reads the environment; 0 or an errno, which stderr explains. Before the fabric is joined. */
HCA_INTERNAL int hca_costs_read(void);
HCA_INTERNAL void hca_costs_publish(void);  /* for softhca-stat, when the fabric has been joined */
HCA_INTERNAL void hca_costs_in_child(void); /* after fork */

/* What one operation costs, summed up and then spent at once. Zeroed at first. */
struct hca_charge {
    uint64_t begin; /* ticks; 0: nothing is charged yet */
    uint64_t ps;
};
/* n times the cost of this key, which is counted. What is not set costs nothing. */
HCA_INTERNAL void hca_charge_add(struct hca_charge *c, enum hca_cost_key key, uint64_t n);
HCA_INTERNAL void hca_charge_spend(const struct hca_charge *c);
/* Both in one, for a call that has two costs at most. */
HCA_INTERNAL void hca_cost_pay(enum hca_cost_key a, uint64_t n_a, enum hca_cost_key b, uint64_t n_b);

/* cost_clock.c: the processor's clock, in ticks; spinning until so much time has passed since `begin`, the calls
 * themselves included. */
HCA_INTERNAL uint64_t hca_cost_ticks(void);
HCA_INTERNAL void hca_cost_spin(uint64_t begin, uint64_t ps);
/* Takes some ten milliseconds. `one` spends so much by a call as programs make it. */
HCA_INTERNAL void hca_cost_calibrate(void (*one)(void), uint64_t ps);

/* cost_calls.c: the verbs that a context has in place of those without costs. */
HCA_INTERNAL void hca_cost_use(struct ibv_context_ops *ops);
/* cost_data.c: hca_deliver() or hca_deliver_ud(), with its costs before it. */
HCA_INTERNAL enum hca_outcome hca_cost_deliver(struct hca_qp_own *qp, const struct hca_swqe *w,
                                               enum ibv_wc_status *status);

/* cost_pages.c: a region has been registered in this slot: spends what that costs. */
HCA_INTERNAL void hca_cost_region(uint32_t slot, const void *addr, uint64_t length);
HCA_INTERNAL unsigned hca_cost_page_shift(uint32_t slot); /* of its pages */
/* cost_cache.c: charges for each page of the list that the device's translation cache does not have. */
HCA_INTERNAL void hca_cost_translate(struct hca_charge *c, uint32_t device, const struct hca_sge *sge, uint32_t n);
HCA_INTERNAL void hca_cost_cache_in_child(void);

/* cost_engine.c: the engine that all processes of a device have together, with `engine=1`. NULL: it cannot be had, and
 * the message goes without it. Else who holds its state, which hca_serial_leave() wants to know. */
HCA_INTERNAL struct hca_peer *hca_serial_enter(uint32_t device);
HCA_INTERNAL void hca_serial_leave(struct hca_peer *host, uint32_t device);
/* Whether this queue pair is another one than that which the engine had before. host NULL: our own engine. */
HCA_INTERNAL bool hca_serial_switched(struct hca_peer *host, uint32_t device, uint32_t qpn);
/* Time until the engine is free by the clock of the process that had it last; 0 where all have one clock. */
HCA_INTERNAL uint64_t hca_serial_busy_ns(struct hca_peer *host, uint32_t device);
/* For the engine's thread: a descriptor (-1: none) that is readable when others look for the engine here. */
HCA_INTERNAL int hca_serial_fd(void);
HCA_INTERNAL void hca_serial_serve(void);
HCA_INTERNAL void hca_serial_in_child(void);

#endif
