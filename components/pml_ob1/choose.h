/* Which protocol carries a message: one pure function, asked by the sender when a message starts and by the receiver
 * for each path when a rendezvous has matched. */
#ifndef OB1_CHOOSE_H
#define OB1_CHOOSE_H

#include <strata/sdk/btl.h>

enum ob1_protocol {
    /* sender */
    OB1_P_EAGER,        /* one fragment */
    OB1_P_EAGER_SYNC,   /* one fragment, answered */
    OB1_P_STREAM,       /* fragments, one after the other, without waiting for the receiver */
    OB1_P_RNDV,         /* announce the length */
    OB1_P_RNDV_EXPOSED, /* announce the length and where the data is */
    OB1_P_RNDV_KEY,     /* same, registered first: the key goes along */
    /* receiver */
    OB1_P_NOTHING,  /* no byte is wanted */
    OB1_P_GET,      /* the receiver pulls */
    OB1_P_PUT,      /* the sender is told where to put */
    OB1_P_SPLIT,    /* both at the same time, half each: two processors move it */
    OB1_P_PIPELINE, /* the sender is told to send fragments */
    OB1_P_COUNT
};

/* The parameter pml_ob1_rndv. */
enum ob1_rndv { OB1_RNDV_AUTO, OB1_RNDV_GET, OB1_RNDV_PUT, OB1_RNDV_SPLIT, OB1_RNDV_PIPELINE };

struct ob1_choice {
    bool matched;                       /* false: the sender asks; true: the receiver */
    bool contiguous;                    /* the asker's memory */
    bool peer_exposed;                  /* receiver: the sender's memory is contiguous and its address came along */
    bool peer_key;                      /* receiver: and it is registered, its key came along */
    strata_mode_t mode;                 /* sender */
    enum ob1_rndv wanted;               /* the user's wish; what cannot be is ignored */
    uint32_t caps;                      /* of the path, less what it has lost */
    uint64_t length;                    /* sender: of the message; receiver: of the range to fetch */
    uint64_t eager_limit, stream_limit; /* sender */
    uint64_t rdma_min;                  /* receiver: from here on get and put pay */
    uint64_t split_min;                 /* receiver: from here on both sides move half each; 0: never */
    bool announce;                      /* sender: it is announced, whatever the limits say */
};

enum ob1_protocol ob1_choose(const struct ob1_choice *c);
const char *ob1_protocol_name(enum ob1_protocol p);

#endif
