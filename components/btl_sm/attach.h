/* Business cards, and attaching the segment of the peer that a card describes. */
#ifndef SM_ATTACH_H
#define SM_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct sm_module;
struct sm_peer;

#define SM_SOCKET_NAME 40u
#define SM_CARD_KEY    "btl_sm"

/* The card that a process publishes. */
struct sm_card {
    uint32_t version;
    uint32_t pid;
    uint32_t uid;
    int32_t fd;
    uint64_t pid_ns; /* inode of the pid namespace in which pid counts */
    uint64_t boot;   /* hash of the boot id: processes of one running kernel */
    uint64_t job;
    uint64_t probe_address, probe_value;
    uint8_t key[16];
    char socket[SM_SOCKET_NAME]; /* abstract AF_UNIX name, without the leading NUL; "" if there is none */
};

/* attach.c */
int sm_card_make(struct sm_module *m);
void sm_card_drop(struct sm_module *m);
int sm_card_fetch(struct sm_module *m, int rank, struct sm_card *out, char *why, size_t why_size);
int sm_attach(struct sm_module *m, int rank, struct sm_peer **out, char *why, size_t why_size);
void sm_unmap(struct sm_peer *p);
bool sm_process_alive(uint32_t pid);
/* Of an attached process; true where that cannot be known, for one of another pid namespace. */
bool sm_peer_alive(const struct sm_peer *p);

/* attach_socket.c */
/* A name that nobody guesses who does not know the key: the prefix and half of the key. */
void sm_socket_name(char name[SM_SOCKET_NAME], const char *prefix, const uint8_t key[16]);
/* The abstract AF_UNIX address of that name, and its length. */
struct sockaddr_un;
socklen_t sm_socket_address(const char *name, struct sockaddr_un *a);
int sm_socket_listen(char name[SM_SOCKET_NAME], const uint8_t key[16]);
void sm_socket_serve(struct sm_module *m); /* answers those who wait, without blocking */
int sm_socket_fetch(struct sm_module *m, const struct sm_card *card, char *why, size_t why_size); /* an fd or -1 */

#endif
