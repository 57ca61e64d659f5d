/* Calls itself by another name than its file and its symbol. */
#include "fake.h"

ST_COMPONENT(btl, wrong_name) = {ST_COMPONENT_HEAD("btl", "right_name", "1.0", "a transport under a false name"),
                                 .ops_size = sizeof(fake_ops), .ops = &fake_ops};
