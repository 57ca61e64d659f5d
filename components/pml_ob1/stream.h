/* Messages that come in as a stream. */
#ifndef OB1_STREAM_H
#define OB1_STREAM_H

#include <strata/sdk/list.h>
#include <strata/sdk/peer.h>
#include "wire.h"

struct ob1;
struct ob1_peer;
struct ob1_req;

/* A message that comes in as a stream (stream.c). */
struct ob1_stream {
    struct st_node node;
    uint32_t number, total, got;
    uint32_t end;        /* bytes that come: total, or fewer where the sender or its peer failed */
    bool ordered;        /* so far each fragment continued the one before */
    bool announced;      /* its OB1_STREAM has arrived */
    char *buffer;        /* NULL: goes straight to req */
    struct ob1_req *req; /* the receive that has matched, or NULL */
    int failed;
    int32_t rank; /* of the sender in the job */
};

/* stream.c */
int ob1_stream_run(void *arg, struct st_work *w); /* sender: the rest of a stream */
extern const struct st_work_ops ob1_stream_work;
struct ob1_stream *ob1_stream_expect(struct ob1 *pml, struct ob1_peer *peer, const struct ob1_arrival *a);
bool ob1_stream_attach(struct ob1 *pml, struct ob1_stream *st, struct ob1_req *req);
void ob1_on_stream_data(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
void ob1_stream_add(struct ob1 *pml, struct ob1_stream *st, uint32_t offset, const void *data, uint32_t len);
void ob1_stream_cut(struct ob1_stream *st, int rc); /* no more of it comes */
void ob1_stream_drop(struct ob1 *pml, struct ob1_stream *st);

#endif
