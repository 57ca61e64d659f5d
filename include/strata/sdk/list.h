/* Intrusive doubly linked list: a head is a node that points to itself when empty. No allocation, no locks. */
#ifndef STRATA_SDK_LIST_H
#define STRATA_SDK_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct st_node {
    struct st_node *next, *prev;
};

#define ST_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void st_list_init(struct st_node *head)
{
    head->next = head->prev = head;
}
static inline bool st_list_empty(const struct st_node *head)
{
    return head->next == head;
}
static inline void st_list_insert_before(struct st_node *at, struct st_node *n)
{
    n->next = at;
    n->prev = at->prev;
    at->prev->next = n;
    at->prev = n;
}
static inline void st_list_append(struct st_node *head, struct st_node *n)
{
    st_list_insert_before(head, n);
}
static inline void st_list_prepend(struct st_node *head, struct st_node *n)
{
    st_list_insert_before(head->next, n);
}
static inline void st_list_remove(struct st_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = n;
}
static inline struct st_node *st_list_first(const struct st_node *head)
{
    return head->next == head ? NULL : head->next;
}
static inline struct st_node *st_list_pop(struct st_node *head)
{
    struct st_node *n = st_list_first(head);
    if (n)
        st_list_remove(n);
    return n;
}

#endif
