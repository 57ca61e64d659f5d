/* What a cache of registrations ought to do, as simply as possible: a list of registrations in the order of their last
 * use, searched from end to end. Predicts which get must hit, and what is registered after each step. */
#ifndef TEST_SUPPORT_NAIVE_RCACHE_H
#define TEST_SUPPORT_NAIVE_RCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct naive_rcache;

struct naive_rcache *naive_rcache_create(uint64_t max_bytes, uint64_t max_entries, uint64_t device_bytes);
void naive_rcache_destroy(struct naive_rcache *n);
/* Whether something live contains the range with the access. */
bool naive_rcache_hit(const struct naive_rcache *n, int client, uintptr_t from, uintptr_t to, uint32_t access);
/* A get that misses: evicts as the contract says; false: the device stays out of memory. Then add it. */
bool naive_rcache_room(struct naive_rcache *n, uintptr_t from, uintptr_t to);
void naive_rcache_add(struct naive_rcache *n, int client, uintptr_t from, uintptr_t to, uint32_t access,
                      const void *handle);
/* A get that hit what has this handle: false when that must not be handed out for the range. */
bool naive_rcache_use(struct naive_rcache *n, const void *handle, int client, uintptr_t from, uintptr_t to,
                      uint32_t access);
void naive_rcache_put(struct naive_rcache *n, const void *handle);
/* As if applied at once. */
void naive_rcache_invalidate(struct naive_rcache *n, uintptr_t from, uintptr_t to);
uint64_t naive_rcache_flush(struct naive_rcache *n);
/* Whether it is registered, live or not. */
bool naive_rcache_has(const struct naive_rcache *n, const void *handle);
uint64_t naive_rcache_entries(const struct naive_rcache *n);
uint64_t naive_rcache_bytes(const struct naive_rcache *n);

#endif
