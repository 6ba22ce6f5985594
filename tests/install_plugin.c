// Built by tests/install.sh: loads the library by dlopen, as a host of plugins does, and asks it
// from a thread that was there before and from one that came after.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <weir.h>

static int (*create)(struct weir **, const struct weir_options *, struct weir_error *);
static int (*take)(struct weir *, struct weir_key, uint64_t, struct weir_answer *);
static void (*destroy)(struct weir *);
static struct weir *limiter;
static pthread_barrier_t loaded;
static int bad;

static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) printf("%s\n", dlerror());
    return symbol;
}

static void *ask(void *wait) {
    if (wait != NULL) pthread_barrier_wait(&loaded);
    if (take(limiter, weir_str("user:7"), 1, NULL) != WEIR_GRANTED) bad = 1;
    return NULL;
}

static int run(const char *path) {
    pthread_t before, after;
    pthread_barrier_init(&loaded, NULL, 2);
    pthread_create(&before, NULL, ask, &loaded);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    *(void **)&create = find(library, "weir_create");
    *(void **)&take = find(library, "weir_take");
    *(void **)&destroy = find(library, "weir_destroy");
    if (create == NULL || take == NULL || destroy == NULL) return 1;
    if (dlsym(library, "wr_decide") != NULL) return 1; // an internal name
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 5, .period_ns = WEIR_SECOND, .burst = 20};
    if (create(&limiter, &options, NULL) != WEIR_GRANTED) return 1;
    pthread_barrier_wait(&loaded);
    pthread_create(&after, NULL, ask, NULL);
    pthread_join(before, NULL);
    pthread_join(after, NULL);
    destroy(limiter);
    pthread_barrier_destroy(&loaded);
    return dlclose(library);
}

int main(int count, char **arguments) {
    for (int i = 0; count == 2 && i < 3; i++) // and again after it was unloaded
        if (run(arguments[1]) != 0) return 1;
    return count == 2 ? bad : 2;
}
