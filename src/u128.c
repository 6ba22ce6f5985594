// Finds out once how a slot may be read without writing to it.
#include "u128.h"

#include <pthread.h>

bool wr_u128_vector_load;

static void find_out(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    wr_u128_vector_load = __builtin_cpu_supports("avx") != 0;
#endif
}

void wr_u128_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_out);
}
