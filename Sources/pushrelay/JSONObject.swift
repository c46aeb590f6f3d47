/// A JSON object as a literal; members without a value are left out.
struct JSONObject: Encodable, ExpressibleByDictionaryLiteral {
  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
  }

  private let members: [(name: String, value: any Encodable)]

  init(dictionaryLiteral members: (String, (any Encodable)?)...) {
    self.members = members.compactMap { name, value in value.map { (name, $0) } }
  }

  func encode(to encoder: any Encoder) throws {
    var object = encoder.container(keyedBy: Name.self)
    for (name, value) in members { try object.encode(value, forKey: Name(stringValue: name)) }
  }
}
