/* http_api.c: see http_api.h. */
#include "web/http_api.h"

#include "base/check.h"

#include <dlfcn.h>
#include <stddef.h>

static pl_mhd_calls found;
static int is_there;

/* What libmicrohttpd calls when its own state is broken, in place of abort. */
static void panic(void *context, const char *file, unsigned line,
                  const char *reason)
{
    (void)context;
    pl_check_failed(file, (int)line, reason ? reason : "libmicrohttpd's own");
}

pl_status pl_mhd_load(const pl_mhd_calls **calls, pl_error *err)
{
    *calls = &found;
    if (is_there)
        return PL_OK;
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libmicrohttpd.so", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "the library libmicrohttpd, which serves pages, is not "
                       "installed. On Debian and Ubuntu: apt-get install "
                       "libmicrohttpd12 (libmicrohttpd12t64 on the newest)");
        /* POSIX: a pointer to a function is read through one to data */
#define FIND(name)                                                             \
    *(void **)(void *)&found.name = dlsym(library, #name);                     \
    if (!found.name)                                                           \
        return pl_fail(err, PL_E_UNSUPPORTED,                                  \
                       "the library libmicrohttpd of this machine has no %s. " \
                       "0.9.75 (Debian 12) and newer ones have it",            \
                       #name);
    PL_MHD_CALLS(FIND)
#undef FIND
    found.MHD_set_panic_func(panic, NULL);
    is_there = 1;
    return PL_OK;
}
