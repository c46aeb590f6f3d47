/// Which decisions this core makes: one more whenever the same events would give other effects, or
/// other bytes stand for them. A recording is replayed by the version that made it; the golden one
/// among the tests fails until this says so.
package let coreVersion: UInt32 = 8
