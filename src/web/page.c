/* page.c: see page.h. */
#include "web/page.h"

#include <string.h>

const pl_page_file *pl_page_find(const char *name)
{
    for (size_t i = 0; i < pl_page_file_count; i++)
        if (strcmp(pl_page_files[i].name, name) == 0)
            return &pl_page_files[i];
    return NULL;
}
