// json_scan.h - finds a few members of a JSON object without building it.
//
// The whole text is checked against the grammar (RFC 8259), except that the bytes of strings need
// not be UTF-8: they are keys, not text. Numbers are handed out as they are written, so that a time
// such as 1431857103.123456789 keeps all its digits, which a double does not.
#ifndef WR_JSON_SCAN_H
#define WR_JSON_SCAN_H

#include "format.h"

// For each wanted name, its value in the object `text`: the characters of a string (unescaped into
// the scratch where it has escapes), else a number, true or false as written. NULL where there is
// none, or null, an object or an array. The last of several members of one name counts.
//
// A name is a path, its parts joined by dots: "http.host" is the member host of the member http, or
// the member "http.host". False when the text is no JSON object, with words.
bool wr_json_scan(struct wr_fields *fields, struct wr_text text, struct wr_fault *fault);

#endif
