// values.c - costs and weights, in integers.
#include "values.h"

#include <stdbool.h>

#define NOT_A_COST "not a cost; a cost is a whole number, 0 or more"
#define NOT_A_WEIGHT "not a weight; write 2, 1/3 or 0.5"

struct cursor {
    const char *at;
    const char *end;
};

static bool next_is_digit(const struct cursor *c) {
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

// Goes on with `number`; false when it outgrows 2^63 - 1.
static bool take_digits(struct cursor *c, uint64_t *number) {
    while (next_is_digit(c)) {
        if (*number > ((uint64_t)INT64_MAX - 9) / 10) return false;
        *number = *number * 10 + (uint64_t)(*c->at++ - '0');
    }
    return true;
}

static bool take(struct cursor *c, char wanted) {
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

const char *wr_cost_value(struct wr_text text, uint64_t *cost) {
    struct cursor c = {text.data, text.data + text.length};
    *cost = 0;
    if (take(&c, '-') && next_is_digit(&c)) return "a negative cost; a cost is 0 or more";
    if (!next_is_digit(&c)) return NOT_A_COST;
    if (!take_digits(&c, cost)) return "a cost of 2^63 or more; count in a coarser unit";
    if (take(&c, '.') && !next_is_digit(&c)) return NOT_A_COST;
    while (take(&c, '0')) {}
    return c.at == c.end ? NULL : NOT_A_COST;
}

static const char *reduce(uint64_t num, uint64_t den, struct weir_weight *weight) {
    uint64_t a = num, b = den;
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    if (num == 0 || den == 0) return "a weight of nothing; weights are above 0, such as 2 or 1/3";
    if (num / a > UINT32_MAX || den / a > UINT32_MAX)
        return "a weight beyond 32 bits; write a rounder one, such as 2, 1/3 or 0.5";
    weight->num = (uint32_t)(num / a);
    weight->den = (uint32_t)(den / a);
    return NULL;
}

const char *wr_weight_value(struct wr_text text, struct weir_weight *weight) {
    struct cursor c = {text.data, text.data + text.length};
    uint64_t num = 0, den = 1;
    if (!next_is_digit(&c) || !take_digits(&c, &num)) return NOT_A_WEIGHT;
    if (take(&c, '/')) {
        den = 0;
        if (!next_is_digit(&c) || !take_digits(&c, &den)) return NOT_A_WEIGHT;
    } else if (take(&c, '.')) {
        const char *point = c.at;
        if (!next_is_digit(&c) || !take_digits(&c, &num) || c.at - point > 18) return NOT_A_WEIGHT;
        for (; point < c.at; point++) den *= 10;
    }
    return c.at == c.end ? reduce(num, den, weight) : NOT_A_WEIGHT;
}
