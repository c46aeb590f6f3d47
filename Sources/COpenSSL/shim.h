// OpenSSL 3 for Swift: the headers, and a function for each function-like macro that Swift
// cannot see. Each `pushrelay_X` is OpenSSL's `X` and nothing more, unless it says so.
#ifndef PUSHRELAY_COPENSSL_SHIM_H
#define PUSHRELAY_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/x509_vfy.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "OpenSSL 3.0 or newer is needed (Debian and Ubuntu: libssl-dev)"
#endif

static inline int pushrelay_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int pushrelay_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_max_proto_version(context, version);
}

/// The options of every context: no renegotiation, no compression, the server's cipher order
/// except for clients that prefer ChaCha20 (they lack AES instructions).
static inline void pushrelay_SSL_CTX_set_options(SSL_CTX *context) {
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                   SSL_OP_PRIORITIZE_CHACHA);
}

/// Buffers are given back whenever they are empty, and no chain is built anew at each handshake.
static inline void pushrelay_SSL_CTX_set_mode(SSL_CTX *context) {
  SSL_CTX_set_mode(
      context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY | SSL_MODE_NO_AUTO_CHAIN);
}

static inline void pushrelay_SSL_CTX_set_read_ahead(SSL_CTX *context, int on) {
  SSL_CTX_set_read_ahead(context, on);
}

/// Has `mac` be HMAC-SHA-256 with this key (`EVP_MAC_CTX_set_params`, whose names are C strings
/// that must stay where they are).
static inline int pushrelay_EVP_MAC_CTX_set_SHA256(
    EVP_MAC_CTX *mac, unsigned char *key, size_t length) {
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key, length),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
      OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, parameters);
}

static inline void pushrelay_SSL_CTX_set_session_cache_off(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void pushrelay_SSL_CTX_set_max_cert_list(SSL_CTX *context, long bytes) {
  SSL_CTX_set_max_cert_list(context, bytes);
}

static inline int pushrelay_SSL_CTX_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
  return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline int pushrelay_SSL_set_tlsext_host_name(SSL *session, const char *name) {
  return (int)SSL_set_tlsext_host_name(session, name);
}

static inline void pushrelay_BIO_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

static inline void pushrelay_BIO_clear_retry_flags(BIO *bio) { BIO_clear_retry_flags(bio); }

/// A new key on the curve P-256 (`EVP_EC_gen`).
static inline EVP_PKEY *pushrelay_EVP_EC_gen_P256(void) { return EVP_EC_gen("P-256"); }

static inline long pushrelay_BIO_get_mem_data(BIO *bio, char **bytes) {
  return BIO_get_mem_data(bio, bytes);
}

static inline void pushrelay_OPENSSL_free(void *memory) { OPENSSL_free(memory); }

#endif
