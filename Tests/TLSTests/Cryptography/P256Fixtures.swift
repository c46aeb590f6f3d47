/// Keys in PEM, made by `openssl` 3.0. Those of P-256 are the one of RFC 6979, appendix A.2.5.
enum P256Fixtures {
  static let privateKeys = [
    """
    -----BEGIN EC PARAMETERS-----
    BggqhkjOPQMBBw==
    -----END EC PARAMETERS-----
    -----BEGIN EC PRIVATE KEY-----
    MHcCAQEEIMmvqdhFunUWa1whV2ex1pNOUMPbNuibEnuKYisSD2choAoGCCqGSM49
    AwEHoUQDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Z5A/4QCLi8
    maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimQ==
    -----END EC PRIVATE KEY-----
    """,
    """
    -----BEGIN EC PRIVATE KEY-----
    MHcCAQEEIMmvqdhFunUWa1whV2ex1pNOUMPbNuibEnuKYisSD2choAoGCCqGSM49
    AwEHoUQDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Z5A/4QCLi8
    maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimQ==
    -----END EC PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgya+p2EW6dRZrXCFX
    Z7HWk05Qw9s26JsSe4piKxIPZyGhRANCAARg/tS6JVqdMclh63TGNW1owEm4kjth
    +mzmaWIuYPKftnkD/hAIuLyZpBrp6VYovGTy8bIMLX6fUXejwpTURiKZ
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MEECAQAwEwYHKoZIzj0CAQYIKoZIzj0DAQcEJzAlAgEBBCDJr6nYRbp1FmtcIVdn
    sdaTTlDD2zbomxJ7imIrEg9nIQ==
    -----END PRIVATE KEY-----
    """,
  ]

  /// PKCS #8 with the number of that key and the point of another.
  static let mixedHalves = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgya+p2EW6dRZrXCFX
    Z7HWk05Qw9s26JsSe4piKxIPZyGhRANCAARGwjJCRGmxuS7VYjIiykvCfFrP5D21
    UZjNgQLweruA/b5PRvTzz+AIn7W2o7C2dXPUEmA0oOfxExWGln5KRolI
    -----END PRIVATE KEY-----
    """

  /// Encrypted; of P-384, secp256k1 and Ed25519, both halves; points that are none: off the curve,
  /// at infinity.
  static let otherKeys = [
    """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAidGHY02nFRkAICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEELj7LR0z6BViL+78mmiyYDQEgZB/
    PcPA2/o3z5Qe1+xWVEOM3E7R3zQu8FR5rKL53+UWyQcgQ9RJTKXDgjHfHZvbrhkr
    j3oxE8IMApGz8TB5SmZLz5Nt2urkhTKBLjSgx6RX7dkBZq79lJvg6PdiPmWr+4Si
    F43BRKiahQId5mHw1ed942+QsDrct4wYlv0qjZEbYNYSDPK+pLZLzy05mfyyHRI=
    -----END ENCRYPTED PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCjlmz+O/eWbdfEYWMN
    f/ELPipbyMGJJj+00WAX7irQ19XdpMb1+O/0ym7viUY1OWChZANiAARqwtotlM3K
    GG6wgfW2T2kRQ9hJdyOXTrLGRARA49Ri9cJvgFORj9R6irHG/rlcT4SPiXvx/Q+0
    XmH9B50bd98vhz+X+c0odBScQESxeukZ7CMq6SLvtOptgGRrjZU4Lb0=
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN PUBLIC KEY-----
    MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEasLaLZTNyhhusIH1tk9pEUPYSXcjl06y
    xkQEQOPUYvXCb4BTkY/Ueoqxxv65XE+Ej4l78f0PtF5h/QedG3ffL4c/l/nNKHQU
    nEBEsXrpGewjKuki77TqbYBka42VOC29
    -----END PUBLIC KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQghMAD2rZOlFiKN1jQHNpH
    ONQRuxMvQNhT7+XNtnpOvvqhRANCAATPBCLgjq0yBZgZpFdaP6Pbl0kywxukodZy
    I1O9qcVJwW+PWMyCEwudjkGVdRHIelu/umkYQ6A+4IKDEur45wz/
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN PUBLIC KEY-----
    MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEzwQi4I6tMgWYGaRXWj+j25dJMsMbpKHW
    ciNTvanFScFvj1jMghMLnY5BlXURyHpbv7ppGEOgPuCCgxLq+OcM/w==
    -----END PUBLIC KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEICM6PVCLzeY3XGB6H/74x5YMsd6hV+4Y26sr/fEkY7Wg
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEAXQNCo2Jfiz0u1UZMpBLl1MoMuSE152AUUgFWQgU1nqw=
    -----END PUBLIC KEY-----
    """,
    """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7
    Yfps5mliLmDyn7Z5A/4QCLi8maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimA==
    -----END PUBLIC KEY-----
    """,
    """
    -----BEGIN PUBLIC KEY-----
    MBkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDAgAA
    -----END PUBLIC KEY-----
    """,
    "", "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
  ]
}
