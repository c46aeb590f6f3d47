/// Files of a phone as versions sealed them that used swift-crypto; the passcode is 0000.
enum EarlierPhone {
  static let keybag = """
    {
      "check" : "5BDvyT9u++mzwB8xuEhMSY6ZaIXCRNFlN/8P1nuBRns=",
      "complete" : {
        "key" : "U473lcpNFC5OnfQBvBUvIgCykjni4jqWAXtdfBY31wUu2WYkUlM3ZA==",
        "rounds" : 210000,
        "salt" : "ICXqe8ZgtuPkuc7uvPBHIQ=="
      },
      "deviceKey" : "liW+ZUcM2YJ9M9VDJ9WvOyWit81zKsl8y/9FmmhgELs=",
      "format" : 1
    }
    """

  /// In Base64.
  static let archive =
    "UFJQQQEPY29tLmV4YW1wbGUuYXBwAo75w27PeKTTn2EeYc8xGRuMW+Kj51oOBYw5/75RBPH59M8dqXywwt1tYn50"
    + "loRHuruWRjKnk9rUS8VoUlEyu3WG5zVwMftd39CqwcRqcjAtco8tgE4llKQa5YZa6g=="
}
