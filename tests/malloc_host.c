// Linking weir leaves the host's malloc alone: it is still libc's. Linked once with the static and
// once with the shared library.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

static int comes_from_libc(const char *name) {
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL) {
        printf("%s: not found\n", name);
        return 0;
    }
    const char *base = strrchr(info.dli_fname, '/');
    base = base == NULL ? info.dli_fname : base + 1;
    if (strncmp(base, "libc.", 5) == 0 || strncmp(base, "libc-", 5) == 0) return 1;
    printf("%s comes from %s\n", name, info.dli_fname);
    return 0;
}

int main(void) {
    static const char *names[] = {"malloc", "calloc", "realloc", "free", "posix_memalign"};
    struct weir *limiter = NULL;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){5, WEIR_SECOND, 20};
    if (weir_create(&limiter, &options, NULL) != WEIR_GRANTED) return 1;
    if (weir_take(limiter, weir_str("user:7"), 1, NULL) != WEIR_GRANTED) return 1;
    weir_destroy(limiter);
    int good = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) good &= comes_from_libc(names[i]);
    return good ? 0 : 1;
}
