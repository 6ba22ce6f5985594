// cli_files.h - a folder of files for a test, and the command run on them.
#ifndef WR_TEST_CLI_FILES_H
#define WR_TEST_CLI_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

struct folder {
    char path[64];
};

static inline struct folder folder_create(void) {
    struct folder folder = {"/tmp/weir-test-XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

static inline const char *folder_file(const struct folder *folder, const char *name, char *path) {
    snprintf(path, 128, "%s/%s", folder->path, name);
    return path;
}

// How many files there are in it.
static inline size_t folder_count(const struct folder *folder) {
    DIR *listing = opendir(folder->path);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(listing);
    return count;
}

static inline void folder_remove(const struct folder *folder) {
    DIR *listing = opendir(folder->path);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        unlinkat(dirfd(listing), entry->d_name, 0);
    closedir(listing);
    rmdir(folder->path);
}

static inline void write_file(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

// As one member of a gzip file, added at the end; `level` is zlib's.
static inline void append_gzip(const char *path, const char *bytes, size_t length) {
    gzFile file = gzopen(path, "ab");
    assert_non_null(file);
    assert_true(length == 0 || gzwrite(file, bytes, (unsigned)length) > 0);
    assert_int_equal(gzclose(file), Z_OK);
}

// All of a file, with an end; the caller frees it.
static inline char *read_whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    bytes[*length] = '\0';
    fclose(file);
    return bytes;
}

// Runs a command line of the shell with the folder as its working folder, where "$WEIR" is the
// command. Returns its exit code; what it wrote is in the files `out` and `err` of the folder.
static inline int run_in(const struct folder *folder, const char *line) {
    char command[4096];
    const char *weir = getenv("WEIR_BIN");
    assert_non_null(weir);
    assert_int_equal(access(weir, X_OK), 0);
    snprintf(command, sizeof(command), "cd %s && WEIR='%s' && { %s ; } >out 2>err", folder->path,
             weir, line);
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// Whether the file `name` of the folder has `words` in it.
static inline int file_says(const struct folder *folder, const char *name, const char *words) {
    char path[128];
    size_t length;
    char *bytes = read_whole(folder_file(folder, name, path), &length);
    int found = strstr(bytes, words) != NULL;
    if (!found) print_error("'%s' is not in %s: %.2000s\n", words, name, bytes);
    free(bytes);
    return found;
}

#endif
