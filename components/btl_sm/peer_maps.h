/* Memory of peers that is mapped here, so that a put with a notice into it is stores: parts of the files that their
 * pools give shared memory from (sdk/shared_file.h). Which part, the key of registered memory says. Each mapping
 * belongs to one peer, and stays until it is the one used last of too many, or the peer has gone. */
#ifndef SM_PEER_MAPS_H
#define SM_PEER_MAPS_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/shared_map.h>

struct sm_module;
struct sm_peer;

#define SM_MAPS_PEER 32u   /* most mappings of one peer */
#define SM_MAPS_ALL  1024u /* and of all together */

/* The key of registered memory; zeros for memory that is not in the process's shared file. Peers read it, and do not
 * trust it. */
struct sm_key {
    uint64_t address; /* of the memory, in its process */
    struct st_shared_name name;
};
_Static_assert(sizeof(struct sm_key) == ST_BTL_KEY_MAX, "a key, without holes");

struct sm_map {
    struct sm_map *next; /* of the same peer: in the order of their last use */
    struct sm_key key;
    struct st_shared_mapping at; /* .memory NULL: it cannot be mapped */
    uint64_t used;               /* when it was used last, by the module's count of uses */
    uint32_t holds;              /* operations that store to it from progress */
};

/* `len` bytes at `remote`, an address in the peer, as they are mapped here; NULL: the key does not name them as shared,
 * or they cannot be mapped. *map may be held until the operation ends. */
uint8_t *sm_map_find(struct sm_peer *p, const uint8_t *key, uint64_t remote, size_t len, struct sm_map **map);
/* st_btl_rdma.map: a mapping of the caller's own. */
int sm_map_lasting(struct st_btl_endpoint *ep, uint64_t remote, const uint8_t *remote_key, size_t len,
                   struct st_shared_mapping *out);
/* The peer goes; nothing holds a mapping of it. */
void sm_maps_drop(struct sm_peer *p);
size_t sm_maps_bytes(const struct sm_module *m); /* that are mapped */
/* st_btl_rdma.reg: the key of any memory. */
int sm_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);

#endif
