// demo_board.c - counters in an anonymous shared mapping.
//
// Words: a process alone writes its counters, figures, state and slots; the command alone writes
// start, end and alive. Counters are 64 bits and slots 32, so that none is ever seen half written.
//   R1 relaxed  a count or a figure: each is read for itself, and the last reading comes after the
//               process ended (waitpid)
//   P1 publish  a state with the words and figures before it; start with end before it
//   A1 acquire  the other side of P1
#include "demo_board.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define SPARE_SLOTS 100 // for asks that come late

struct series {
    _Atomic(uint32_t) asked;
    _Atomic(uint32_t) granted;
};

struct process {
    _Alignas(64) _Atomic(uint64_t) asked;
    _Atomic(uint64_t) granted;
    _Atomic(uint32_t) state;
    _Atomic(uint64_t) figures[WR_DEMO_FIGURE_COUNT];
    char words[256];
};

struct wr_demo_board {
    size_t bytes;
    size_t slots;
    uint32_t keys;
    _Atomic(uint64_t) start_ns;
    _Atomic(uint64_t) end_ns;
    _Atomic(uint64_t) alive;
    struct process processes[WR_DEMO_PROCESSES_MAX];
    struct series series[]; // [process][key][slot]
};

const char *wr_demo_figure_word(enum wr_demo_figure figure) {
    static const char *const words[] = {
#define WORD(name, word) word,
        WR_DEMO_FIGURES(WORD)
#undef WORD
    };
    return words[figure];
}

bool wr_demo_board_create(struct wr_demo_board **board, const struct wr_demo_options *options,
                          struct wr_fault *fault) {
    const size_t slots = (size_t)(options->duration_ns / WR_DEMO_SLOT_NS) + SPARE_SLOTS;
    const size_t bytes = sizeof **board + sizeof(struct series) * slots * options->keys *
                                              options->processes;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *board = NULL;
    if (memory == MAP_FAILED)
        return wr_fault(fault, "no shared memory for %zu bytes of counters: %s", bytes,
                        strerror(errno));
    *board = memory;
    (*board)->bytes = bytes;
    (*board)->slots = slots;
    (*board)->keys = options->keys;
    const uint64_t alive = UINT64_MAX >> (64 - options->processes);
    atomic_store_explicit(&(*board)->alive, alive, memory_order_relaxed); // R1
    return true;
}

void wr_demo_board_destroy(struct wr_demo_board *board) {
    if (board != NULL) munmap(board, board->bytes);
}

size_t wr_demo_board_slots(const struct wr_demo_board *board) {
    return board->slots;
}

static size_t place_of(const struct wr_demo_board *board, uint32_t process, uint32_t key,
                       size_t slot) {
    return ((size_t)process * board->keys + key) * board->slots + slot;
}

// One writer each: a load and a store will do.
static void add(_Atomic(uint64_t) *count) {
    const uint64_t before = atomic_load_explicit(count, memory_order_relaxed); // R1
    atomic_store_explicit(count, before + 1, memory_order_relaxed); // R1
}

static void add_small(_Atomic(uint32_t) *count) {
    const uint32_t before = atomic_load_explicit(count, memory_order_relaxed); // R1
    atomic_store_explicit(count, before + 1, memory_order_relaxed); // R1
}

void wr_demo_board_count(struct wr_demo_board *board, uint32_t process, uint32_t key, bool granted,
                         uint64_t at_ns) {
    struct process *own = &board->processes[process];
    size_t slot = (size_t)(at_ns / WR_DEMO_SLOT_NS);
    if (slot >= board->slots) slot = board->slots - 1;
    struct series *series = &board->series[place_of(board, process, key, slot)];
    add(&own->asked);
    add_small(&series->asked);
    if (!granted) return;
    add(&own->granted);
    add_small(&series->granted);
}

void wr_demo_board_set(struct wr_demo_board *board, uint32_t process, enum wr_demo_figure figure,
                       uint64_t value) {
    _Atomic(uint64_t) *place = &board->processes[process].figures[figure];
    atomic_store_explicit(place, value, memory_order_relaxed); // R1
}

void wr_demo_board_say(struct wr_demo_board *board, uint32_t process, const char *words) {
    struct process *own = &board->processes[process];
    snprintf(own->words, sizeof own->words, "%s", words);
}

void wr_demo_board_move(struct wr_demo_board *board, uint32_t process, enum wr_demo_state state) {
    _Atomic(uint32_t) *place = &board->processes[process].state;
    atomic_store_explicit(place, (uint32_t)state, memory_order_release); // P1
}

void wr_demo_board_begin(struct wr_demo_board *board, uint64_t start_ns, uint64_t end_ns) {
    atomic_store_explicit(&board->end_ns, end_ns, memory_order_relaxed); // R1
    atomic_store_explicit(&board->start_ns, start_ns, memory_order_release); // P1
}

void wr_demo_board_end(struct wr_demo_board *board, uint64_t end_ns) {
    atomic_store_explicit(&board->end_ns, end_ns, memory_order_relaxed); // R1
}

void wr_demo_board_bury(struct wr_demo_board *board, uint32_t process) {
    const uint64_t alive = wr_demo_board_alive(board) & ~(UINT64_C(1) << process);
    atomic_store_explicit(&board->alive, alive, memory_order_relaxed); // R1
}

uint64_t wr_demo_board_start_ns(const struct wr_demo_board *board) {
    return atomic_load_explicit(&board->start_ns, memory_order_acquire); // A1
}

uint64_t wr_demo_board_end_ns(const struct wr_demo_board *board) {
    return atomic_load_explicit(&board->end_ns, memory_order_relaxed); // R1
}

uint64_t wr_demo_board_alive(const struct wr_demo_board *board) {
    return atomic_load_explicit(&board->alive, memory_order_relaxed); // R1
}

enum wr_demo_state wr_demo_board_state(const struct wr_demo_board *board, uint32_t process) {
    const _Atomic(uint32_t) *place = &board->processes[process].state;
    return (enum wr_demo_state)atomic_load_explicit(place, memory_order_acquire); // A1
}

const char *wr_demo_board_words(const struct wr_demo_board *board, uint32_t process) {
    return board->processes[process].words;
}

uint64_t wr_demo_board_figure(const struct wr_demo_board *board, uint32_t process,
                              enum wr_demo_figure figure) {
    const _Atomic(uint64_t) *place = &board->processes[process].figures[figure];
    return atomic_load_explicit(place, memory_order_relaxed); // R1
}

uint64_t wr_demo_board_asked(const struct wr_demo_board *board, uint32_t process) {
    return atomic_load_explicit(&board->processes[process].asked, memory_order_relaxed); // R1
}

uint64_t wr_demo_board_granted(const struct wr_demo_board *board, uint32_t process) {
    return atomic_load_explicit(&board->processes[process].granted, memory_order_relaxed); // R1
}

struct wr_demo_slot wr_demo_board_slot(const struct wr_demo_board *board, uint32_t process,
                                       uint32_t key, size_t slot) {
    const struct series *series = &board->series[place_of(board, process, key, slot)];
    return (struct wr_demo_slot){
        atomic_load_explicit(&series->asked, memory_order_relaxed),   // R1
        atomic_load_explicit(&series->granted, memory_order_relaxed), // R1
    };
}
