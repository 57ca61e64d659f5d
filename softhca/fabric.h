/* Names of the fabric: processes find each other by abstract sockets, which vanish with their process. */
#ifndef SOFTHCA_FABRIC_H
#define SOFTHCA_FABRIC_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The listening socket of the process with this index. SOFTHCA_FABRIC (default 0) keeps fabrics apart. */
__attribute__((visibility("hidden"))) void hca_socket_name(uint32_t index, struct sockaddr_un *a, socklen_t *n);
/* A connection to the process with this index, and its pid; -1 and errno. */
__attribute__((visibility("hidden"))) int hca_call(uint32_t index, pid_t *pid);
/* The same name in another fabric of this user. */
__attribute__((visibility("hidden"))) void hca_socket_name_in(const char *fabric, uint32_t index, struct sockaddr_un *a,
                                                              socklen_t *n);
/* What a connection manager has at a port (of 65536) of one of librdmacm's port spaces; `owner`: cm_port.c. */
__attribute__((visibility("hidden"))) void hca_manager_name(uint32_t space, uint32_t port, const char *owner,
                                                            struct sockaddr_un *a, socklen_t *n);
/* After fork: the connection manager's locks. */
__attribute__((visibility("hidden"))) void cm_in_child(void);
/* Opens a file that may be mapped: of ordinary pages, and of a size that nobody can make smaller. Others would end us
 * with SIGBUS. -1: it is none. */
__attribute__((visibility("hidden"))) int hca_memory_open(const char *path, int how, struct stat *st);
#define HCA_MEMORY_NAME "softhca"
#define HCA_KEYS_NAME   "softhca-keys-%u" /* with the index, since peers have those of others open for a moment */

#endif
