/* What differs between Open MPI 4.1 and 5.0, and nothing else. The other files are written for 4.1's names.
 *
 * 4.1 (Debian 12) is the version that is tested. */
#ifndef PML_STRATA_COMPAT_H
#define PML_STRATA_COMPAT_H

#include "ompi_config.h"

/* How the Open MPI that this is built for begins to name itself. */
#define PML_STRATA_TEXT2(x) #x
#define PML_STRATA_TEXT(x)  PML_STRATA_TEXT2(x)
#define PML_STRATA_BUILT_FOR                                                                                           \
    "Open MPI v" PML_STRATA_TEXT(OMPI_MAJOR_VERSION) "." PML_STRATA_TEXT(OMPI_MINOR_VERSION) "."

#include "opal/mca/mpool/mpool.h"
#ifdef MCA_MPOOL_BASE_VERSION_3_1_0
#define PML_STRATA_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_1_0
#else
#define PML_STRATA_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_0_0
#endif

#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "ompi/runtime/ompi_rte.h"
#define PML_STRATA_SCOPE       PMIX_GLOBAL
#define PML_STRATA_LOCAL_PEERS PMIX_LOCAL_PEERS
#define PML_STRATA_STRING      PMIX_STRING
typedef size_t pml_strata_length_t; /* of what is published */
#define PML_STRATA_COMPONENT_VERSION  MCA_PML_BASE_VERSION_2_1_0
#define COLL_STRATA_COMPONENT_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define ompi_comm_get_cid             ompi_comm_get_local_cid
typedef mca_pml_base_component_2_1_0_t pml_strata_component_t;
/* Members that 5.0 added or dropped at the place where 4.1 has pml_ft_event. */
#define PML_STRATA_MODULE_EXTRA .pml_revoke_comm = pml_strata_revoke_comm,
#else
#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"
#define PML_STRATA_SCOPE              OPAL_PMIX_GLOBAL
#define PML_STRATA_LOCAL_PEERS        OPAL_PMIX_LOCAL_PEERS
#define PML_STRATA_STRING             OPAL_STRING
typedef int32_t pml_strata_length_t;
#define PML_STRATA_COMPONENT_VERSION  MCA_PML_BASE_VERSION_2_0_0
#define COLL_STRATA_COMPONENT_VERSION MCA_COLL_BASE_VERSION_2_0_0
typedef mca_pml_base_component_2_0_0_t pml_strata_component_t;
#define PML_STRATA_MODULE_EXTRA       .pml_ft_event = mca_pml_base_ft_event,
#endif

#endif
