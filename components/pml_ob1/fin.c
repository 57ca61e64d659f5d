/* Reports of ranges that were got. Gets of a transport end when it is polled, often several at a time, and each report
 * would cost what a short message does, at both ends. So what ends in one round of progress is told in one message,
 * at the end of the round. */
#include "control.h"
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "wire.h"

void ob1_fins_send(struct ob1 *pml)
{
    struct ob1_fins *f = &pml->fins;
    struct wire_control h = {.type = OB1_FIN, .found = f->found, .id = f->fin[0].id, .bytes = f->fin[0].bytes};
    uint32_t n = f->n;

    if (n == 0)
        return;
    f->n = 0;
    ob1_control(pml, f->peer, f->path, &h, sizeof(h), &f->fin[1], (n - 1) * (uint32_t)sizeof(f->fin[0]));
}

int ob1_attend(void *arg)
{
    struct ob1 *pml = arg;

    ob1_fins_send(pml);
    st_worker_calm(pml->head.worker, OB1_WORK);
    return 0;
}

void ob1_fin_soon(struct ob1 *pml, const struct ob1_req *req, uint8_t path, uint64_t bytes)
{
    struct ob1_peer *peer = req->peer;
    struct ob1_fins *f = &pml->fins;

    if (f->n && (f->peer != peer || f->path != path || f->n == OB1_FINS ||
                 f->n * sizeof(f->fin[0]) > st_peer_way(peer->shared, path)->btl->max_send))
        ob1_fins_send(pml);
    f->peer = peer;
    f->path = path;
    if (f->n == 0)
        f->found = req->found;
    f->fin[f->n++] = (struct wire_fin){req->sender_id, bytes};
    st_worker_attend(pml->head.worker, OB1_WORK);
}
