// json_list.h - lists and objects of JSON that lose nothing without a word.
//
// What cannot be added (NULL: it could not be made) takes the whole of it away, and json_pack() of
// the report around it then gives NULL.
#ifndef WR_JSON_LIST_H
#define WR_JSON_LIST_H

#include <jansson.h>

// Both take the value over.
static inline void wr_json_append(json_t **list, json_t *value) {
    if (json_array_append_new(*list, value) == 0) return;
    json_decref(*list);
    *list = NULL;
}

static inline void wr_json_set(json_t **object, const char *name, json_t *value) {
    if (json_object_set_new(*object, name, value) == 0) return;
    json_decref(*object);
    *object = NULL;
}

#endif
