/* Its open() gives up and says why. */
#include "fake.h"

ST_COMPONENT(btl, open_fails) = {ST_COMPONENT_HEAD("btl", "open_fails", "1.0", "a transport that cannot be opened"),
                                 .ops_size = sizeof(fake_ops), .ops = &fake_ops};
