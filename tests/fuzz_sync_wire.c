// Fuzzer (libFuzzer): what a hostile or foreign server may send, through every reader of the sync.
#include <stdlib.h>
#include <string.h>

#include "../src/sync/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool true_of_all) {
    if (!true_of_all) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct wr_node_reply replies[WR_WIRE_REPORTS_MAX];
    struct wr_wire_answer answer;
    struct wr_wire_redirect redirect;
    struct wr_wire_record record;
    uint16_t bad[WR_WIRE_BAD_KEYS_MAX];
    const char *text = (const char *)data;
    const size_t count = size < 24 ? 0 : (size - 24) / 16;
    if (count <= WR_WIRE_REPORTS_MAX &&
        wr_wire_unpack(data, size, count, &answer, replies) == WR_WIRE_OK) {
        expect(answer.redis_us > 0 && answer.marker_seq >= -1);
        for (size_t i = 0; i < count; i++)
            expect(llabs(replies[i].rel_us) < INT64_C(1) << 53);
    }
    expect(wr_wire_error_of(text, size) < WR_WIRE_ERRORS_COUNT);
    if (wr_wire_redirect_of(text, size, &redirect))
        expect(strlen(redirect.host) < sizeof redirect.host && redirect.port != 0);
    const size_t found = wr_wire_bad_keys(text, size, 128, bad);
    for (size_t i = 0; i < found; i++) expect(bad[i] < 128);
    wr_wire_unpack_record(data, size, &record);
    return 0;
}
