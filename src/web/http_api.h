/* http_api.h: libmicrohttpd, opened at run time. It brings a library for TLS
 * with it, whose memory no training should carry; so nothing is linked, and
 * who serves nothing never opens it. Its headers are needed to build. */
#ifndef PL_WEB_HTTP_API_H
#define PL_WEB_HTTP_API_H

#include "base/status.h"

#include <microhttpd.h>

#define PL_MHD_CALLS(X)                                                        \
    X(MHD_start_daemon)                                                        \
    X(MHD_stop_daemon)                                                         \
    X(MHD_run)                                                                 \
    X(MHD_get_timeout)                                                         \
    X(MHD_get_daemon_info)                                                     \
    X(MHD_get_connection_info)                                                 \
    X(MHD_get_connection_values)                                               \
    X(MHD_lookup_connection_value)                                             \
    X(MHD_queue_response)                                                      \
    X(MHD_suspend_connection)                                                  \
    X(MHD_resume_connection)                                                   \
    X(MHD_create_response_from_buffer)                                         \
    X(MHD_create_response_from_callback)                                       \
    X(MHD_destroy_response)                                                    \
    X(MHD_add_response_header)                                                 \
    X(MHD_set_panic_func)                                                      \
    X(MHD_get_version)

typedef struct pl_mhd_calls {
#define PL_MHD_FIELD(name) __typeof__(&(name)) name;
    PL_MHD_CALLS(PL_MHD_FIELD)
#undef PL_MHD_FIELD
} pl_mhd_calls;

/* The functions. PL_E_UNSUPPORTED, with the package's name, where the library
 * is missing or lacks one of them. Opened once, never closed. */
PL_MUST_CHECK pl_status pl_mhd_load(const pl_mhd_calls **calls, pl_error *err);

#endif
