/* Registers the protocol STRATA with MTCL before main: for programs whose source is not to be changed, by the compiler's
 * `-include`, behind the header that includes MTCL's. README.md. */
#ifndef STRATA_MTCL_REGISTERED_HPP
#define STRATA_MTCL_REGISTERED_HPP

#include "strata_mtcl.hpp"

namespace strata_mtcl
{

/* MTCL's tables are made first: they stand above in the same translation unit. */
inline const bool registered = (MTCL::Manager::registerType<protocol>("STRATA"), true);

} // namespace strata_mtcl

#endif
