/* The way of a message that starts: its class, what is known of the receiver, and the table of ways. */
#ifndef OB1_SEND_WAY_H
#define OB1_SEND_WAY_H

#include <strata/sdk/pml.h>
#include "choose.h"
#include "flow.h"

struct ob1;
struct ob1_cpeer;
struct ob1_req;

struct ob1_way {
    bool waits;       /* the caller does, for its end */
    uint8_t protocol; /* enum ob1_protocol; OB1_P_COUNT: not found out yet */
    uint8_t flow;     /* enum ob1_class that has it announced; OB1_WINDOW: it goes by the limits */
};
#define OB1_WAY_UNKNOWN(waiting) ((struct ob1_way){.waits = (waiting), .protocol = OB1_P_COUNT, .flow = OB1_WINDOW})

/* The way of a message to a connected peer, which is counted as sent. */
struct ob1_way ob1_send_way(struct ob1 *pml, const struct ob1_cpeer *to, const strata_data_t *data, strata_mode_t mode,
                            bool waits);
/* The receiver of a message that was announced has said what it found (answers.h); any byte may have come. */
void ob1_send_heard(struct ob1_req *req, uint8_t found);

#endif
