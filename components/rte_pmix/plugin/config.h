/* Parameters of rte_pmix. */
#ifndef RTE_PMIX_CONFIG_H
#define RTE_PMIX_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct rte_pmix_config {
    int64_t timeout_s;
    bool local;
};

#endif
