/* See fake_registrar.h. */
#include "support/fake_registrar.h"

#include <strata/sdk/list.h>

#include <stdlib.h>
#include "support/world.h"

static struct fake_registrar *registrar(struct st_rcache_client *client)
{
    return ST_CONTAINER(client, struct fake_registrar, client);
}

static int make(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    struct fake_registrar *f = registrar(client);
    CHECK(len > 0 && ((uintptr_t)base & 4095) == 0 && (len & 4095) == 0);
    int rc = f->fail_rc;
    f->fail_rc = 0;
    uint64_t bytes = f->bytes + (f->beside ? f->beside->bytes : 0);
    if (rc == STRATA_OK && f->max_bytes && bytes + len > f->max_bytes)
        rc = STRATA_ERR_NOMEM;
    if (rc != STRATA_OK) {
        f->refused++;
        return rc;
    }
    struct fake_registration *r = malloc(sizeof(*r));
    CHECK(r);
    *access |= f->extra;
    *r = (struct fake_registration){.next = &f->all,
                                    .prev = f->all.prev,
                                    .from = (uintptr_t)base,
                                    .to = (uintptr_t)base + len,
                                    .access = *access,
                                    .made_at = f->clock};
    r->prev->next = r->next->prev = r;
    f->n++;
    f->bytes += len;
    f->makes++;
    *handle = r;
    return STRATA_OK;
}

static void unmake(struct st_rcache_client *client, void *handle)
{
    struct fake_registrar *f = registrar(client);
    struct fake_registration *r = f->all.next;
    if (f->n < 1000) /* undone twice, or never made */
        while (r != handle) {
            CHECK(r != &f->all);
            r = r->next;
        }
    r = handle;
    r->prev->next = r->next;
    r->next->prev = r->prev;
    f->n--;
    f->bytes -= r->to - r->from;
    f->unmakes++;
    free(r);
}

void fake_registrar_start(struct fake_registrar *f, struct st_rcache *cache, const char *name)
{
    *f = (struct fake_registrar){.client = {.name = name, .make = make, .unmake = unmake}};
    f->all.next = f->all.prev = &f->all;
    CHECK_OK(cache->ops->attach(cache, &f->client));
}

void fake_registrar_stop(struct fake_registrar *f, struct st_rcache *cache)
{
    cache->ops->detach(cache, &f->client);
    CHECK_EQ(f->n, 0);
    CHECK_EQ(f->bytes, 0);
    CHECK_EQ(f->makes, f->unmakes);
}

struct fake_registration *fake_registration(const struct fake_registrar *f, const struct st_rcache_entry *e)
{
    struct fake_registration *r = f->all.next;
    while (r != e->handle) {
        CHECK_MSG(r != &f->all, "an entry whose registration has been undone");
        r = r->next;
    }
    CHECK(e->client == &f->client && e->from == r->from && e->to == r->to && e->access == r->access);
    return r;
}
