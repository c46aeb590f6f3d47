import GRDB
import Primitives
import RelayCore

/// The silent policy beside the budgets that were used under it.
extension JournalFile {
  private static let (appScope, deviceScope) = ("app", "device")

  /// The budgets under a policy that is in force from now on, when all that is stored was used
  /// under the one before. They are on disk when this returns.
  func budgets(under policy: SilentPolicy, at now: Instant) throws -> SilentBudgets {
    try connection.write { database in
      let app = try clock(Self.appScope, database)
      let device = try clock(Self.deviceScope, database)
      let budgets: SilentBudgets
      if let app, let device {
        var changed = SilentBudgets(policy, appClock: app, deviceClock: device)
        changed.change(to: policy, at: now)
        budgets = changed
      } else {
        budgets = SilentBudgets(policy, at: now)
        try convert("apps", to: budgets.appClock, database)
        try convert("devices", to: budgets.deviceClock, database)
      }
      try write(budgets.appClock, policy, Self.appScope, database)
      try write(budgets.deviceClock, policy, Self.deviceScope, database)
      return budgets
    }
  }

  private func clock(_ scope: String, _ database: Database) throws -> RefillClock? {
    let row = try Row.fetchOne(
      database, sql: "SELECT interval, since, reading FROM silent_policy WHERE scope = ?",
      arguments: [scope])
    guard let row else { return nil }
    guard let interval = row[0] as Int64?, let since = row[1] as Int64?,
      let reading = row[2] as Int64?, interval > 0
    else { throw StoreError.damaged(path: path, reason: "the silent policy") }
    return RefillClock(
      interval: Interval(milliseconds: interval), since: Instant(milliseconds: since),
      reading: reading)
  }

  private func write(
    _ clock: RefillClock, _ policy: SilentPolicy, _ scope: String, _ database: Database
  ) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO silent_policy VALUES (?, ?, ?, ?, ?)",
      arguments: [
        scope, policy.name, clock.interval.milliseconds, clock.since.milliseconds, clock.reading,
      ])
  }

  /// Budgets that were full again at a moment are so when the clock, which begins now with 0, shows
  /// that moment. One that is further away than such a clock ever was is none of ours.
  private func convert(_ table: String, to clock: RefillClock, _ database: Database) throws {
    try database.execute(
      sql: """
        UPDATE \(table) SET budget =
          CASE WHEN budget > ?1 AND budget - ?1 < ?2 THEN (budget - ?1) * ?3 / ?4 ELSE 0 END
        WHERE budget <> 0
        """,
      arguments: [
        clock.since.milliseconds, RefillClock.latest / RefillClock.event, RefillClock.event,
        clock.interval.milliseconds,
      ])
  }
}
