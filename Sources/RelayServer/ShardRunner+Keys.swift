import ProviderCredentials
import RelayCore

extension ShardRunner {
  /// Looks whether the directory of keys has changed since it was read, and if so reads it again;
  /// answers whether other keys are in force now.
  ///
  /// Called when a token names a key that is not known, so that a key counts from the moment in
  /// which `pushrelay key new` returns, on every loop, without a word between the processes. A
  /// stranger can make it look, which is two questions to the file system, each a few
  /// microseconds; to make it read, which blocks this loop for as long, one must have changed the
  /// directory.
  func readKeysAgain() -> Bool {
    guard let directory = settings.keyDirectory else { return false }
    let stamp = directory.stamp
    guard stamp != verifier.keys.stamp, stamp != unreadableKeys else { return false }
    do throws(CredentialFileError) {
      verifier.replaceKeys(try directory.load())
      return true
    } catch {
      // Once is enough for each state of the directory. `Relay` looks too, and tells.
      unreadableKeys = stamp
      return false
    }
  }
}
