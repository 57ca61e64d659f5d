/* The shared end of a module: a locked list of arrivals and a word to sleep on. */
#include "shuffle.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct port *port_create(void)
{
    struct port *port = calloc(1, sizeof *port);
    if (!port)
        return NULL;
    pthread_mutex_init(&port->lock, NULL);
    port->refs = 1;
    port->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st_list_init(&port->arrived);
    st_list_init(&port->regions);
    return port;
}

void port_get(struct port *port)
{
    pthread_mutex_lock(&port->lock);
    port->refs++;
    pthread_mutex_unlock(&port->lock);
}

static void drop_all(struct port *port)
{
    struct st_node *n;
    while ((n = st_list_pop(&port->arrived)))
        free(ST_CONTAINER(n, struct packet, node));
    while ((n = st_list_pop(&port->regions)))
        free(ST_CONTAINER(n, struct region, node));
}

void port_put(struct port *port)
{
    pthread_mutex_lock(&port->lock);
    uint32_t refs = --port->refs;
    pthread_mutex_unlock(&port->lock);
    if (refs)
        return;
    drop_all(port);
    pthread_mutex_destroy(&port->lock);
    if (port->event_fd >= 0)
        close(port->event_fd);
    free(port);
}

void port_wake(struct port *port)
{
    /* Pairs with arm: it says that it sleeps, then looks at the list; we have filled the list, then look whether it
     * sleeps. Both sequentially consistent, so that one of us sees the other. */
    atomic_fetch_add(&port->word, 1);
    if (!atomic_load(&port->sleeping))
        return;
    syscall(SYS_futex, &port->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (port->event_fd >= 0)
        eventfd_write(port->event_fd, 1);
}
