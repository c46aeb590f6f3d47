/* libsqlite3, 3.40 or newer (Debian 12: libsqlite3-dev). */
#ifndef PUSHRELAY_CSQLITE_SHIM_H
#define PUSHRELAY_CSQLITE_SHIM_H
#include <sqlite3.h>
#endif
