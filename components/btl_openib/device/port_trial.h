/* Times of the device's operations: measured once for a module, when its first peer connects, so that its
 * thresholds are of this device and machine. */
#ifndef IB_PORT_TRIAL_H
#define IB_PORT_TRIAL_H

#include <strata/sdk/thresholds.h>

struct ib_module;

/* The least of some turns between two queue pairs of the module. Takes below a millisecond where a write of 64 KiB
 * takes 50 us or less. False: the device does not connect to itself, or an operation failed or took 2 ms. */
bool ib_port_measure(struct ib_module *m, struct st_btl_times *out);
/* Measures, and derives costs, unless that was done, parameters say, or mca_base_tune is off. */
void ib_port_calibrate(struct ib_module *m);
/* st_btl_ops.facts: these costs. What the module says of itself stays as all ranks have it. */
void ib_port_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts);

#endif
