/* memory.c: reads the kernel's own numbers from /proc. */
#include "plan/memory.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

pl_status pl_memory_peak_bytes(size_t *bytes, pl_error *err)
{
    static const char path[] = "/proc/self/status", key[] = "\nVmHWM:";
    char text[8192];
    size_t length;
    pl_status status = pl_file_read_into(path, text, sizeof text, &length, err);
    if (status)
        return status;
    const char *at = strstr(text, key);
    char *end = NULL;
    unsigned long long kib = at ? strtoull(at + sizeof key - 1, &end, 10) : 0;
    if (!at || kib == 0 || strncmp(end, " kB", 3) != 0)
        return pl_fail(err, PL_E_FORMAT, "%s: no VmHWM in kB here", path);
    *bytes = (size_t)kib * 1024;
    return PL_OK;
}
