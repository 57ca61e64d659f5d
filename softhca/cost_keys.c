/* What the costs are called. */
#include "cost_keys.h"

const char *const hca_cost_names[HCA_COSTS] = {
    [HCA_COST_REG] = "reg",
    [HCA_COST_PAGE] = "page",
    [HCA_COST_DEREG] = "dereg",
    [HCA_COST_QP] = "qp",
    [HCA_COST_QP_ENTRY] = "qp_entry",
    [HCA_COST_CQ] = "cq",
    [HCA_COST_CQ_ENTRY] = "cq_entry",
    [HCA_COST_MODIFY] = "modify",
    [HCA_COST_DESTROY] = "destroy",
    [HCA_COST_POST_SEND] = "post_send",
    [HCA_COST_POST_RECV] = "post_recv",
    [HCA_COST_SEGMENT] = "segment",
    [HCA_COST_MAX_SGE] = "max_sge",
    [HCA_COST_PACKET] = "packet",
    [HCA_COST_POLL] = "poll",
    [HCA_COST_COLD] = "cold",
    [HCA_COST_SWITCH] = "switch",
    [HCA_COST_EVENT] = "event",
    [HCA_COST_BYTE] = "byte",
    [HCA_COST_ENGINE] = "engine",
};
