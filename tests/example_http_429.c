// Answering 429: a handler that tells its clients what is left to them, and when to come again.
#include <string.h>

#include "example.h"
#include "weir.h"

static void respond(struct weir *limiter, const char *client, char *response, size_t size) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const int result = weir_take(limiter, weir_str(client), 1, &answer);
    char fields[WEIR_HTTP_FIELDS_MAX];
    if (weir_http_fields(limiter, result, &answer, WEIR_HTTP_STRUCTURED | WEIR_HTTP_RETRY_AFTER,
                         fields, sizeof fields, NULL) != WEIR_GRANTED)
        fields[0] = '\0';
    snprintf(response, size, "HTTP/1.1 %s\r\n%sContent-Length: 0\r\n\r\n",
             result == WEIR_GRANTED ? "200 OK" : "429 Too Many Requests", fields);
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = "api";
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_MINUTE, .burst = 2};
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    char response[1024];
    respond(limiter, "203.0.113.9", response, sizeof response);
    expect(strcmp(response, "HTTP/1.1 200 OK\r\n"
                            "RateLimit-Policy: \"api\";q=2;w=120\r\n"
                            "RateLimit: \"api\";r=1;t=60\r\n"
                            "Content-Length: 0\r\n\r\n") == 0,
           "the first is served");
    respond(limiter, "203.0.113.9", response, sizeof response);
    respond(limiter, "203.0.113.9", response, sizeof response);
    expect(strncmp(response, "HTTP/1.1 429 ", 13) == 0, "the third is turned away");
    expect(strstr(response, "\r\nRateLimit: \"api\";r=0;t=") != NULL, "nothing is left");
    expect(strstr(response, "\r\nRetry-After: ") != NULL, "and it hears when to come again");
    weir_destroy(limiter);
    return 0;
}
