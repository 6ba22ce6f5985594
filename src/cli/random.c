// random.c - splitmix64, and the three distributions that a workload needs, in integers.
//
// The usual ways to an exponential or a Zipf variate go through log() and pow(), whose last bits
// differ from one libm to the next. Both have exact ways that only compare and multiply integers.
#include "random.h"

__extension__ typedef unsigned __int128 wide;

struct wr_random wr_random_init(uint64_t seed) {
    return (struct wr_random){wr_random_mix(seed)};
}

// Each step is a bijection: an odd multiplier, or a shift that leaves the top bits as they were.
uint64_t wr_random_mix(uint64_t number) {
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

uint64_t wr_random_next(struct wr_random *random) {
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    return wr_random_mix(random->state);
}

uint64_t wr_random_below(struct wr_random *random, uint64_t bound) {
    return (uint64_t)(((wide)wr_random_next(random) * bound) >> 64);
}

bool wr_random_once_in(struct wr_random *random, uint64_t times) {
    return wr_random_below(random, times) == 0;
}

// Von Neumann's way: in a run of falling uniforms, the chance that the run which starts at u has an
// odd length is exp(-u). So the fraction is a u whose run was odd, and each failure adds one whole.
uint64_t wr_random_exponential_q32(struct wr_random *random) {
    for (uint64_t whole = 0;; whole = (whole + 1) % 64) {
        uint64_t first = wr_random_next(random);
        uint64_t last = first;
        uint64_t next;
        bool odd = true;
        while ((next = wr_random_next(random)) < last) {
            last = next;
            odd = !odd;
        }
        if (odd) return (whole << 32) + (first >> 32);
    }
}

// The blocks [2^b, 2^(b+1)) of ranks all have nearly the same weight: choose a block, a rank in it,
// and keep rank r with chance 2^b / r. Each r is then proposed by 2^-b and kept by 2^b / r: 1 / r.
uint64_t wr_random_zipf(struct wr_random *random, uint64_t count) {
    unsigned blocks = 64 - (unsigned)__builtin_clzll(count);
    while (true) {
        uint64_t first = UINT64_C(1) << wr_random_below(random, blocks);
        uint64_t rank = first + wr_random_below(random, first);
        if (wr_random_below(random, rank) < first && rank <= count) return rank - 1;
    }
}
