/* page.h: the files of src/web/page, which are in the program: cmake makes C of
 * them (cmake/page_files.cmake). They name nothing that isn't here. */
#ifndef PL_WEB_PAGE_H
#define PL_WEB_PAGE_H

#include <stddef.h>

typedef struct pl_page_file {
    const char *name; /* "live.html" */
    const char *type; /* its Content-Type */
    const unsigned char *bytes;
    size_t n;
} pl_page_file;

extern const pl_page_file pl_page_files[];
extern const size_t pl_page_file_count;

/* The file of that name, or NULL. */
const pl_page_file *pl_page_find(const char *name);

#endif
