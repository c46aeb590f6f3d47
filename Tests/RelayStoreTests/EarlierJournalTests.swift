import Foundation
import Primitives
import RelayCore
import SQLite
import Testing

@testable import RelayStore

/// A journal that an earlier build has written opens, and holds what that build promised.
@Suite("A journal of an earlier build") struct EarlierJournalTests {
  /// What the build of 21 November 2026 left behind (commit a4cb572, schema 1): a phone with an
  /// app, an alert and a silent push stored for it, and an app that it had removed.
  private static let rows = [
    """
    INSERT INTO notifications VALUES (1099511627779,X'0100000a9b58be05a20100009b203da0a20100\
    00d78a22828e1fb8f401000000000000801141111111111111111111111111118117000000200f003bda63fe\
    6494567e92f81c0cee254387ede3e7532978bb5b71da3bb1c1fba9cb636f6d2e6578616d706c652e6170707b\
    22617073223a7b22616c657274223a226f6e65227d7d5ff5e8f4');
    """,
    """
    INSERT INTO notifications VALUES (1099511627780,X'01030105aa58be05a2010000aa203da0a20100\
    00d78a22828e1fb8f402000000000000802242222222222222222222222222228225000000200f003bda63fe\
    6494567e92f81c0cee254387ede3e7532978bb5b71da3bb1c1fba9cb636f6d2e6578616d706c652e6170707b\
    22617073223a7b22636f6e74656e742d617661696c61626c65223a317d2c226e223a327d7891df70');
    """,
    """
    INSERT INTO devices VALUES (X'71da3bb1c1fba9cb6eca783804da9132',X'9dfa61f1729593e1a1fad2\
    97644f1433ab7c86ee64baa663b738415cfef29aa4',0);
    """,
    """
    INSERT INTO apps VALUES (X'71da3bb1c1fba9cb6eca783804da9132','com.example.app',X'3bda63f\
    e6494567e92f81c0cee254387ede3e7532978bb5b71da3bb1c1fba9cb',0,0);
    """,
    """
    INSERT INTO unregistered VALUES (1,X'd2e2abca7d97b219f5de902469978260d77f7f286285749671d\
    a3bb1c1fba9cb','com.example.gone',1795392690357);
    """,
    """
    INSERT INTO meta VALUES ('highest',2199023255551);
    """,
    """
    INSERT INTO sqlite_sequence VALUES ('unregistered',1);
    """,
  ]

  private let directory: TemporaryDirectory

  /// The file as it was, statement by statement.
  init() throws {
    directory = try TemporaryDirectory()
    let file = try SQLiteConnection(path: directory.journal)
    try file.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try file.execute("PRAGMA application_id = \(Schema.applicationID)")
    try file.execute(Schema.steps[0])
    try file.execute("PRAGMA user_version = 1")
    for row in Self.rows { try file.execute(row) }
    try file.execute("PRAGMA journal_mode = WAL")
    try file.close()
  }

  @Test func itOpensAndHoldsWhatWasPromised() async throws {
    let journal = try Listener().open(directory)
    var pushes: [String] = []
    var accepted: [Int64] = []
    var others = 0
    for record in try journal.everything() {
      if case .notification(let notification, _, let acceptedAt) = record {
        accepted.append(acceptedAt.milliseconds)
        pushes.append(
          "\(notification.apnsID) \(notification.notificationClass.name) "
            + String(decoding: notification.payload, as: UTF8.self))
      } else {
        others += 1
      }
    }
    #expect(
      pushes == [
        #"11111111-1111-4111-8111-111111111111 visible {"aps":{"alert":"one"}}"#,
        #"22222222-2222-4222-8222-222222222222 silent {"aps":{"content-available":1},"n":2}"#,
      ])
    #expect(accepted == [1_795_392_690_331, 1_795_392_690_346])
    // The phone, its app, and the token that is gone.
    #expect(others == 3)
    let gone = try await journal.feedback(since: 0, limit: 10, isWanted: { true })
    #expect(gone.map(\.topic.description) == ["com.example.gone"])
    #expect(gone.map(\.at) == [Instant(milliseconds: 1_795_392_690_357)])
    await journal.stop()
  }

  /// It is of the present schema afterwards, and opens again.
  @Test func itIsCarriedOver() async throws {
    await (try Listener().open(directory)).stop()
    let journal = try Listener().open(directory)
    #expect(try journal.sequences() == [1_099_511_627_779, 1_099_511_627_780])
    await journal.stop()
    let file = try JournalFile(existing: directory.journal, afterFailure: false)
    #expect(try Schema.version(of: file.connection) == Schema.steps.count)
  }
}
