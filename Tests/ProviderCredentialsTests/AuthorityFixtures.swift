@testable import ProviderCredentials

/// Authorities that the relay did not make as it makes them now.
enum AuthorityFixtures {
  static let all = [earlier, ed25519, rsa]

  /// As the relay made them with swift-certificates and swift-crypto; ten years.
  static let earlier = PEMIdentity(
    certificate: """
      -----BEGIN CERTIFICATE-----
      MIIBujCCAWCgAwIBAgIVAMfRHXSiDOIcPucgQ5sutn5Sfd0gMAoGCCqGSM49BAMC
      MDkxIjAgBgNVBAMMGXB1c2gtcmVsYXkgZGV2ZWxvcG1lbnQgQ0ExEzARBgNVBAoM
      CnB1c2gtcmVsYXkwHhcNMjYxMTIxMjM1ODU4WhcNMzYxMTE4MjM1ODU4WjA5MSIw
      IAYDVQQDDBlwdXNoLXJlbGF5IGRldmVsb3BtZW50IENBMRMwEQYDVQQKDApwdXNo
      LXJlbGF5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtQi4SaFfE+64/SWODg1P
      xN0H7g8yR+MY0ewTWVtjPK0X9beyyYii4d09kHvPc+3gjV54xygTVt3PUIgFfKgS
      kaNFMEMwEgYDVR0TAQH/BAgwBgEB/wIBADAOBgNVHQ8BAf8EBAMCAQYwHQYDVR0O
      BBYEFNwIiNvetXV10PRG86m8FDIPL8rqMAoGCCqGSM49BAMCA0gAMEUCIA7YjtdS
      Tc7xFrvAlBY4R8b26pkv/aEDeiyalwerfu3tAiEAgPkyM1LnC/r4fiEePfasKCFZ
      ZnaYGjZiG4A4OuLIIwM=
      -----END CERTIFICATE-----

      """,
    privateKey: """
      -----BEGIN PRIVATE KEY-----
      MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg2DAVupm8NptUnmUU
      +xazwyPNw5AT4lr/B+tD0RahfhihRANCAAS1CLhJoV8T7rj9JY4ODU/E3QfuDzJH
      4xjR7BNZW2M8rRf1t7LJiKLh3T2Qe89z7eCNXnjHKBNW3c9QiAV8qBKR
      -----END PRIVATE KEY-----

      """)

  /// By `openssl req` 3.0, as the next one; a hundred years.
  static let ed25519 = PEMIdentity(
    certificate: """
      -----BEGIN CERTIFICATE-----
      MIIBZTCCARegAwIBAgIUYCFbylTWxhspprum03tTPO71eM0wBQYDK2VwMB8xHTAb
      BgNVBAMMFEFuIEVkMjU1MTkgYXV0aG9yaXR5MCAXDTI2MTEyMjAxMDcwNFoYDzIx
      MjYxMDI5MDEwNzA0WjAfMR0wGwYDVQQDDBRBbiBFZDI1NTE5IGF1dGhvcml0eTAq
      MAUGAytlcAMhALm2616HeTnZCvPnaw1dfYCyFmkjwZ9wHJE/n4KVo1Ilo2MwYTAf
      BgNVHSMEGDAWgBTZRF4vyHdS7WPuITVT8/nbtVv74DAPBgNVHRMBAf8EBTADAQH/
      MA4GA1UdDwEB/wQEAwICBDAdBgNVHQ4EFgQU2UReL8h3Uu1j7iE1U/P527Vb++Aw
      BQYDK2VwA0EANOxPk/nGwGEzd0+MaSnCUtOxQMaUjvYexmrkI3OQVUSpoNoTGFM1
      dIdeh/RTObIvy7bwJWg1iIMfseeS4Gs6Bg==
      -----END CERTIFICATE-----

      """,
    privateKey: """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEILe0o0lABCP6S3Z1jo9MOBAt4I0rAOUa07lUHoXI/U+2
      -----END PRIVATE KEY-----

      """)

  static let rsa = PEMIdentity(
    certificate: """
      -----BEGIN CERTIFICATE-----
      MIIDKTCCAhGgAwIBAgIUPMs+yoj4mGAgF7Lu1rwfVb5z2NswDQYJKoZIhvcNAQEL
      BQAwGzEZMBcGA1UEAwwQQW4gUlNBIGF1dGhvcml0eTAgFw0yNjExMjIwMTA3MDRa
      GA8yMTI2MTAyOTAxMDcwNFowGzEZMBcGA1UEAwwQQW4gUlNBIGF1dGhvcml0eTCC
      ASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAL473NrR59lxnI5jWe68kH2K
      2SjkJlIBQJ/x2vX2t6GuSt7xVJHsWEI2e0JhaG0ESU1AX1ql/VGzCfBP9zs4hc3i
      /3mhPJp66oeSdh1wURwvOJCi+3wtGfFp1/r1L3qOV3Tp6odrb8XSWm/rwko+TYoO
      90SrgUpocjjBE4S9z6xpamju/za4holHVPQzstTFy3su+10Nt6vOrktWa5gF+Npe
      Yeejis801gCgl2j7PBzkk0oGUiLSEk6jg0ZaskeD91WmNExOpBFJohQDukiKMjt8
      bLoDKs/uhQtxXeFFs2qudEigDwNS0KhsG6gHV293+Nn3eYQ7hpi3bmG/T/jXjPMC
      AwEAAaNjMGEwHwYDVR0jBBgwFoAUdBWdK+yBYtt9IR4JNNCZI8zOV9IwDwYDVR0T
      AQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAgQwHQYDVR0OBBYEFHQVnSvsgWLbfSEe
      CTTQmSPMzlfSMA0GCSqGSIb3DQEBCwUAA4IBAQC8WwwK1i+XW1t+rTNK65e8AEJt
      3sYIJBYWGpwYM/ej6roaOSDeLAIb09eBrPWKzQch5ugpnYWyZ0A794oD4shx57bJ
      vsXve/pxS65rQfNuFHb3sGi3vuZvCjXPJOMpIPeMP5LcPVx9VFj4E3R6YJZUZ6MA
      VFudXyGoQD1jN743AsyNKXu3OIfr1CCXWD4rwmsofp+HWE24JLDTOi+ITqIWQ/4k
      Lk4KXz319XUujbXlMF/NxOyI9rkx+RkWATJ78EF3Trt2T9yYQCqdERzcyVymumZF
      K0CcUxueH0ZEyDLsGHM59jM9BM/L03i9LKlqtjYWxjyKkE8IYejjgpvCWJJW
      -----END CERTIFICATE-----

      """,
    privateKey: """
      -----BEGIN PRIVATE KEY-----
      MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC+O9za0efZcZyO
      Y1nuvJB9itko5CZSAUCf8dr19rehrkre8VSR7FhCNntCYWhtBElNQF9apf1Rswnw
      T/c7OIXN4v95oTyaeuqHknYdcFEcLziQovt8LRnxadf69S96jld06eqHa2/F0lpv
      68JKPk2KDvdEq4FKaHI4wROEvc+saWpo7v82uIaJR1T0M7LUxct7LvtdDberzq5L
      VmuYBfjaXmHno4rPNNYAoJdo+zwc5JNKBlIi0hJOo4NGWrJHg/dVpjRMTqQRSaIU
      A7pIijI7fGy6AyrP7oULcV3hRbNqrnRIoA8DUtCobBuoB1dvd/jZ93mEO4aYt25h
      v0/414zzAgMBAAECggEAF3ci4wsJYlUVTqsKqNwxpoq+BsE9yNfGtPQMYlKwjA0H
      x0BVgjp5GJHH2oRRcUEaGaFbIb9f4/gFvdLfWDq8pozdno84/oUy8M4sK61zE9rv
      S0gPZV3a2WCI97fOx3tPZmiEOXgTLX+pEC0wph/RSLpX3eyZ4ifIDyAh3DndqBKR
      7h0RQinUKaePWWi23FU6DT2hlcKpDb2yJqk/+PSjOZgh/5ik5U8ZbBImMEeUF5vo
      9Fwu3mUIdqJwwZQzhGA6ZaE2Re//lfUAgcfG4XZY6UjIPfpAT/tV5XTWLK+KlVEj
      lEMsGI1tTvFsygq5xSs8bmBzgoTZnIMATV+/Y4tEgQKBgQD4egtQOQ7/Z9Rkw2yr
      50PiH+aiu1qL+ziUHCida1t2bDrODIjQ0xRD6j7FxWcZlIkfHxy1Yk1R9bTn+/XM
      xZCS06egmz3VPZ9Qw857i3gPfuWru7X1dzhHEOB00upqKk0rrsoGIc0KbnsWblgf
      PO0xPq9CL4h8B9gKG5we/S9dAwKBgQDD/l/3eG8vnjpI9JtxrWjhzg497G1pvtAe
      3Bo2/MP25VsSaGJn97Gl380JbGvXkdt/0A3dRabcmvY54Xsn3Umxl0mRkLFgj+DV
      mGagG8f1Zoa+wKk5lSUE01anZJCCu4MTe1kgc0V+ZIru0lZNm6V01wrZHvrb6IJD
      dF7UKAi1UQKBgQDOY3EqPXq7ot7Eo56MWxgDp0PHP5/CTfV88La7qwTZpKRjqf2q
      lulqUBO76m/sy3fqJcmO0AwxW8ncN2i/ogqoKq49tTTy/rBqQXotHHepR1o1/0Dw
      lwpj3RzTbK3RaTmYYyLjXQgW9hW/WABSUiUillK0ww63FzzXiH9xLhQ9SQKBgB5j
      JRvoV0zJun2vNx6T5UwFN54QNxKLHBd8xq+51uRDwTAEcSVveOKf5VlNrxa4LZEO
      f+fLschIWl60//Q5UgCv1R81kNrI0/Ip89dlF0aMA941XsdnwVqTLb88T0+FpRfz
      KulmFeM30Xafs/PKawfHg44QSJKp5PBybXV1U4xRAoGBALIgwXRFaraK0nGERp5G
      +KVThrNPDUOdGZsDH/TUYzzh5FuJ17d81AkfWpbYVlvRAAPOT8nnADAjdWH1tXop
      M8Cbv5jBA/EbAF+Q2soBVC8H1hM3du7GZUoq4BPEOHisXJnyLxqk8W9WRdvuWeDi
      fS3HKV2qz73QOtC6bZP+mJYC
      -----END PRIVATE KEY-----

      """)
}
