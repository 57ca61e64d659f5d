/* The framework's ops struct has another length here. */
#include "fake.h"

ST_COMPONENT(btl, wrong_ops) = {ST_COMPONENT_HEAD("btl", "wrong_ops", "1.0", "a transport with other ops"),
                                .ops_size = sizeof(fake_ops) + 8, .ops = &fake_ops};
