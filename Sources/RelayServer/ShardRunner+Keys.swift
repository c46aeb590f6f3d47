import ProviderCredentials
import RelayCore

extension ShardRunner {
  /// Reads the key directory again if it has changed; returns whether other keys are in force now.
  ///
  /// Called for a token with an unknown key, so that a key is valid on every loop as soon as
  /// `pushrelay key new` returns, without messages between the processes. A stranger can cause two
  /// system calls of a few microseconds each; reading, which blocks this loop, also needs a change
  /// of the directory.
  func readKeysAgain() -> Bool {
    guard let directory = settings.keyDirectory else { return false }
    let stamp = directory.stamp
    guard stamp != verifier.keys.stamp, stamp != unreadableKeys else { return false }
    do throws(CredentialFileError) {
      verifier.replaceKeys(try directory.load())
      return true
    } catch {
      // Once per state of the directory is enough. `Relay` looks too, and logs.
      unreadableKeys = stamp
      return false
    }
  }
}
