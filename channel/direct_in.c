/* Direct messages at the receiver, where the ring is filled by puts. */
#include <string.h>

#include "channel/direct.h"
#include "channel/slots.h"

void channel_wished(strata_channel_receiver_t *c, uint32_t classes)
{
    if (!c->awaited && classes)
        c->awaited = channel_alloc(c->ch, sizeof(*c->awaited)); /* without it messages go by copies */
    if (c->awaited)
        c->awaited->wished = classes;
}

void channel_await(strata_channel_receiver_t *c, void *buffer, size_t size)
{
    struct channel_awaited *a = c->awaited;
    struct channel_head head = {.kind = CHANNEL_WANT, .ring = c->ring};
    struct channel_want want = {.address = (uint64_t)(uintptr_t)buffer, .length = size};
    struct st_peer *peer = c->with->peer;

    if (a->decided || !(a->wished >> channel_class(c->last) & 1) || size < c->last)
        return;
    a->decided = true;
    a->size = size;
    a->at = head.offset = c->in->read;
    a->memory = (struct channel_memory){.at = buffer};
    if (channel_memory_register(&a->memory, st_peer_path(peer, c->path)->btl, size, ST_BTL_ANY_USE) != STRATA_OK)
        return;
    memcpy(want.key, a->memory.reg.key, sizeof(want.key));
    a->told = channel_tell(c->ch, peer, &head, &want, sizeof(want)) == STRATA_OK;
    if (!a->told)
        channel_memory_put(c->ch, &a->memory);
}

int channel_await_begin(strata_channel_receiver_t *c, const struct st_landing_view *slot)
{
    struct channel_awaited *a = c->awaited;
    struct channel_straight straight;

    st_landing_copy(slot, &straight);
    if (!a || !a->told || slot->end != a->at + 1 || straight.length > a->size) {
        channel_log(c->ch, c->with->peer, "a message was put that nobody waits for");
        c->rc = STRATA_ERR_PROTOCOL;
        st_landing_receiver_fail(c->landing, c->rc);
        return c->rc;
    }
    a->coming = true;
    a->length = straight.length;
    a->end = slot->end;
    return STRATA_OK;
}

int channel_await_there(strata_channel_receiver_t *c)
{
    if (c->awaited->there)
        return STRATA_OK;
    return channel_slots_in_rc(c) != STRATA_OK ? channel_slots_in_rc(c) : STRATA_ERR_AGAIN;
}

bool channel_await_landed(strata_channel_receiver_t *c)
{
    struct channel_awaited *a = c->awaited;

    if (!a || !a->told || a->there)
        return false;
    a->there = true;
    return true;
}

void channel_await_end(strata_channel_receiver_t *c)
{
    struct channel_awaited *a = c->awaited;

    if (a->told)
        channel_memory_put(c->ch, &a->memory);
    if (a->told && a->coming && !a->there && c->rc == STRATA_OK)
        c->rc = channel_slots_in_rc(c); /* broken: the rest of the message comes for nobody */
    a->told = a->there = a->coming = a->decided = false;
}
