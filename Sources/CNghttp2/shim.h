/* libnghttp2, 1.52 or newer (Debian 12: libnghttp2-dev). */
#ifndef PUSHRELAY_CNGHTTP2_SHIM_H
#define PUSHRELAY_CNGHTTP2_SHIM_H
#include <malloc.h>
#include <nghttp2/nghttp2.h>
#endif
