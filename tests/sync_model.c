// The server script as a model. TAT is exact in 64 bits here, where Lua has a double.
#include "sync_model.h"

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static struct sync_bucket rolled(const struct sync_bucket *bucket, uint32_t epoch) {
    struct sync_bucket now = *bucket;
    if (!now.exists) now = (struct sync_bucket){.epoch = epoch};
    if (now.epoch == epoch) return now;
    now.previous = now.epoch + 1 == epoch ? now.current : 0;
    now.current = 0;
    now.epoch = epoch;
    return now;
}

static int64_t charge(struct sync_bucket *bucket, const struct sync_report *report, int64_t cap_us,
                      int64_t now_us) {
    const int64_t start = larger(bucket->tat_us, now_us - report->age_us);
    const int64_t end = smaller(start + report->cost_us, now_us + cap_us);
    const int64_t before = larger(bucket->tat_us, end);
    const int64_t forgiven = start + report->cost_us - before;
    bucket->tat_us = before;
    return forgiven;
}

struct sync_answer sync_model_report(struct sync_bucket *bucket, const struct sync_report *report,
                                     bool fresh, int64_t now_us, int64_t epoch_us) {
    struct sync_bucket next = rolled(bucket, (uint32_t)(now_us / epoch_us % (INT64_C(1) << 32)));
    struct sync_answer answer = {0};
    if (fresh) {
        next.exists = true;
        const int64_t demand = (int64_t)next.current + report->demand;
        next.current = (uint32_t)smaller(demand, UINT32_MAX);
        int64_t cap_us = report->backlog ? report->burst_us : report->cap_us;
        if (report->generation > next.generation) {
            next.generation = report->generation;
            next.tat_us = smaller(next.tat_us, now_us + report->cap_us);
        } else if (report->generation < next.generation) {
            cap_us = smaller(cap_us, 2 * epoch_us);
        }
        if (report->cost_us > 0) answer.forgiven_us = charge(&next, report, cap_us, now_us);
        *bucket = next;
    }
    answer.rel_us = next.tat_us > 0 ? next.tat_us - now_us : INT64_MIN;
    answer.previous = next.previous;
    answer.current = next.current;
    return answer;
}

int64_t sync_model_expiry_us(const struct sync_bucket *bucket, int64_t now_us, int64_t epoch_us) {
    return larger(bucket->tat_us, now_us - now_us % epoch_us + 2 * epoch_us);
}
