// Finds out once how a slot may be read without writing to it.
#include "u128.h"

bool wr_u128_vector_load;

void wr_u128_init(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    wr_u128_vector_load = __builtin_cpu_supports("avx") != 0;
#endif
}
