/// The version of the core's decisions: increased when the same events give other effects or
/// encodings (the golden recording's test then fails). A recording needs the version that made it.
package let coreVersion: UInt32 = 8
