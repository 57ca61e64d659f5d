/* The link to a peer with several paths. Every active message carries a number of its own and is kept until the peer
 * has said that it arrived; when a path fails, what was not acknowledged goes again over another one, and what comes
 * twice is dropped. So for the protocols above nothing is ever lost or delivered twice while one path works. Peers with
 * one path have no link and pay nothing, unless path_keep asks for it. docs/design/pml_ob1.md says why this is sound.
 */
#ifndef OB1_LINK_H
#define OB1_LINK_H

#include <strata/sdk/bml.h>
#include <strata/sdk/list.h>
#include <strata/sdk/pml.h>
#include "wire.h"

#define OB1_LINK_WINDOW 512u       /* messages not acknowledged; a power of two */
#define OB1_LINK_BYTES  (4u << 20) /* and their bytes */
#define OB1_LINK_NO_WAY 0xffu

struct ob1;
struct ob1_peer;
struct ob1_link;

enum ob1_way_state {
    OB1_WAY_UP,
    OB1_WAY_DOWN,
    OB1_WAY_TRIED /* connected anew; UP when something could be sent */
};

/* One path as the protocols see it: an endpoint of the link's own module, whose sends are numbered. */
struct ob1_way {
    struct st_btl_endpoint ep;
    struct ob1_link *link;
    uint8_t state; /* enum ob1_way_state */
    bool heard;    /* that it is down was the peer's word */
    bool gone;     /* the transport says that it will never work again */
    uint8_t word;  /* number of its last failure at our end, and of the last one that the peer spoke of */
    uint8_t heard_word;
    uint64_t retry_ns;
};

/* Of a path as a way: that its peer is behind is between the path and its transport; what goes by a way is kept. */
static inline uint32_t ob1_link_caps(const struct st_btl_endpoint *path)
{
    return path->caps & ~(uint32_t)ST_BTL_CROWDED;
}

/* A message that may have to be sent again. */
struct ob1_kept {
    uint32_t seq, size;
    uint8_t hdr_len;
    char bytes[]; /* header, payload */
};

struct ob1_link {
    struct ob1 *pml;
    struct ob1_peer *peer;
    struct st_btl btl;     /* what the ways say of themselves: the least of all paths */
    struct st_node mended; /* in ob1.mending while a way is not up, or the peer is to be refused */
    uint32_t n_ways;       /* 0: not connected; that we send by it is for the peer's by_link to say */
    struct ob1_way way[ST_BML_MAX_PATHS];

    /* Sending: [oldest, next) are kept, of which [again, again_end) are to be sent again. */
    struct ob1_kept *kept[OB1_LINK_WINDOW];
    uint32_t oldest, next, again, again_end;
    size_t bytes;

    /* Receiving: all before `expected` are here, and those whose bit is set. */
    uint32_t expected;
    uint64_t seen[OB1_LINK_WINDOW / 64];
    uint32_t told;       /* `expected` when we last said it */
    size_t untold_bytes; /* received since */

    uint64_t stranded_ns; /* since when no way is up; 0: one is */
    uint64_t refuse_end_ns;
    uint8_t refuse_ways;  /* bits: by which the peer, which has failed, was not told so yet */
    uint8_t failed_ways;  /* bits: news, not dealt with yet */
    uint8_t tell_ways;    /* bits: failed, of which the peer is to be told */
    uint8_t unheard_ways; /* bits: it was told of, and did not say yet that it heard */
    uint8_t answer_ways;  /* bits: its word has come, and it is to be told so */
    bool ack_due;         /* to be said even if nothing else goes there */
    bool ask;             /* the peer is to send again */
    char reason[128];     /* why a way failed last */
};

/* Connected: makes the link when there is more than one path, or what goes by the only one is kept. */
int ob1_link_connect(struct ob1 *pml, struct ob1_peer *peer);
void ob1_link_destroy(struct ob1 *pml, struct ob1_peer *peer);
/* The link of a peer that sends by one. NULL: no memory. */
struct ob1_link *ob1_link_get(struct ob1 *pml, struct ob1_peer *peer);

/* link_send.c */
int ob1_link_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len);
int ob1_link_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                          const struct st_payload *payload);
/* One kept message over `way`, or where that is not up over another; STRATA_ERR_AGAIN when none is. */
int ob1_link_put_on(struct ob1_link *link, uint32_t way, struct ob1_kept *k, uint8_t flags);
/* Only what we have, with flags, over one way whatever its state. */
int ob1_link_tell(struct ob1_link *link, uint32_t way, uint8_t flags, uint32_t lost, uint8_t word);
/* link_refuse.c: the peer has failed for us and is to be told, by each way, for path_wait_ms at most. */
void ob1_link_refuse_begin(struct ob1_link *link, uint64_t now);
bool ob1_link_refuse(struct ob1_link *link, uint64_t now); /* false: all is said */
/* It is heard from all the same: the word was lost, or its transport brings what it sent before. */
void ob1_link_refuse_answer(struct ob1_peer *peer, const struct st_frag *frag);
void ob1_link_acked(struct ob1_link *link, uint32_t ack);
/* The way itself when it is up, else the first that is, else OB1_LINK_NO_WAY. */
uint32_t ob1_link_way(const struct ob1_link *link, uint32_t way);

/* link_recv.c */
enum st_deliver ob1_link_take(struct ob1 *pml, const struct st_frag *frag);

/* link_mend.c */
bool ob1_path_failed(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason); /* of struct st_client */
/* How both ends name a way: by its component and the place of its module among those of the component. */
uint32_t ob1_link_name_of(const struct ob1_link *link, uint32_t way);
/* The peer says that the way of this name has failed, or that it has heard so from us. */
void ob1_link_peer_lost(struct ob1_link *link, uint32_t name, uint8_t word);
void ob1_link_peer_heard(struct ob1_link *link, uint32_t name, uint8_t word);
/* A way does not work. */
void ob1_link_way_down(struct ob1_link *link, uint32_t way, const char *reason);
void ob1_link_wake(struct ob1_link *link);          /* pump is to be called */
bool ob1_link_pending(const struct ob1_link *link); /* pump has something to do */
int ob1_link_pump(struct ob1_link *link);           /* failures, what goes again, acknowledgements; events */
void ob1_links_mend(struct ob1 *pml);               /* tries paths that failed again, now and then */
void ob1_link_peer_failed(struct ob1_link *link);   /* nothing more is to be done for it */

#endif
