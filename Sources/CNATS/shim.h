/* The NATS client for C, 3.4 or newer (Debian 12: libnats-dev). */
#ifndef PUSHRELAY_CNATS_SHIM_H
#define PUSHRELAY_CNATS_SHIM_H
#include <nats/nats.h>
#endif
