/* Intrusive doubly linked list: a head is a node that points to itself when empty. No allocation, no locks. */
#ifndef STRATA_SDK_LIST_H
#define STRATA_SDK_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A node, embedded in what is listed, or the head of a list. */
struct st_node {
    struct st_node *next; /* the node itself when in no list */
    struct st_node *prev; /* likewise */
};

/* The struct of which *ptr is the member. */
#define ST_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Makes an empty head, or a node in no list. */
static inline void st_list_init(struct st_node *head)
{
    head->next = head->prev = head;
}
/* True for an empty head, and for a node in no list. */
static inline bool st_list_empty(const struct st_node *head)
{
    return head->next == head;
}
/* Puts n before `at`. n must be in no list. */
static inline void st_list_insert_before(struct st_node *at, struct st_node *n)
{
    n->next = at;
    n->prev = at->prev;
    at->prev->next = n;
    at->prev = n;
}
/* Puts n last. */
static inline void st_list_append(struct st_node *head, struct st_node *n)
{
    st_list_insert_before(head, n);
}
/* Puts n first. */
static inline void st_list_prepend(struct st_node *head, struct st_node *n)
{
    st_list_insert_before(head->next, n);
}
/* Takes n out of its list; harmless when it is in none. */
static inline void st_list_remove(struct st_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = n;
}
/* First node or NULL. */
static inline struct st_node *st_list_first(const struct st_node *head)
{
    return head->next == head ? NULL : head->next;
}
/* Removes and returns the first node, or NULL. */
static inline struct st_node *st_list_pop(struct st_node *head)
{
    struct st_node *n = st_list_first(head);
    if (n)
        st_list_remove(n);
    return n;
}

#endif
