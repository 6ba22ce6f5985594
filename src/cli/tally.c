// tally.c - a tree of <search.h>, and a list of what is in it.
#include "tally.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) {
    const struct wr_text x = ((const struct wr_tallied *)a)->name;
    const struct wr_text y = ((const struct wr_tallied *)b)->name;
    const int order = memcmp(x.data, y.data, x.length < y.length ? x.length : y.length);
    if (order != 0) return order;
    return (x.length > y.length) - (x.length < y.length);
}

static int by_amount(const void *a, const void *b) {
    const struct wr_tallied *x = *(struct wr_tallied *const *)a;
    const struct wr_tallied *y = *(struct wr_tallied *const *)b;
    if (x->amount != y->amount) return x->amount < y->amount ? 1 : -1;
    return by_name(x, y);
}

static bool reserve(struct wr_tally *tally) {
    if (tally->count < tally->room) return true;
    const size_t room = tally->room != 0 ? 2 * tally->room : 64;
    struct wr_tallied **all = realloc(tally->all, room * sizeof *all);
    if (all == NULL) return false;
    tally->all = all;
    tally->room = room;
    return true;
}

static struct wr_tallied *create(struct wr_text name) {
    struct wr_tallied *made = malloc(sizeof *made + name.length);
    if (made == NULL) return NULL;
    *made = (struct wr_tallied){.name = {(char *)(made + 1), name.length}};
    if (name.length > 0) memcpy(made + 1, name.data, name.length);
    return made;
}

static struct wr_tallied *insert(struct wr_tally *tally, struct wr_text name) {
    if (!reserve(tally)) return NULL;
    struct wr_tallied *made = create(name);
    if (made == NULL || tsearch(made, &tally->tree, by_name) == NULL) {
        free(made);
        return NULL;
    }
    tally->all[tally->count++] = made;
    return made;
}

static struct wr_tallied *find(const struct wr_tally *tally, struct wr_text name) {
    const struct wr_tallied wanted = {.name = name};
    struct wr_tallied **node = tfind(&wanted, &tally->tree, by_name);
    return node != NULL ? *node : NULL;
}

const struct wr_tallied *wr_tally_find(const struct wr_tally *tally, struct wr_text name) {
    return find(tally, name);
}

const struct wr_tallied *wr_tally_add(struct wr_tally *tally, struct wr_text name,
                                      uint64_t amount) {
    struct wr_tallied *tallied = find(tally, name);
    if (tallied == NULL) tallied = insert(tally, name);
    if (tallied == NULL) return NULL;
    if (__builtin_add_overflow(tallied->amount, amount, &tallied->amount) ||
        tallied->amount > INT64_MAX)
        tallied->amount = INT64_MAX;
    tallied->times++;
    return tallied;
}

void wr_tally_sort(struct wr_tally *tally) {
    if (tally->count > 0) qsort(tally->all, tally->count, sizeof(struct wr_tallied *), by_amount);
}

void wr_tally_fini(struct wr_tally *tally) {
    tdestroy(tally->tree, free);
    free(tally->all);
    *tally = (struct wr_tally)WR_TALLY_INIT;
}
