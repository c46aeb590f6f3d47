internal import CNghttp2
internal import Glibc

/// What the process has of the system. C wants pointers for it, so it stands where C is called.
package enum SystemResources {
  /// Lets the process have as many files and sockets open as it may allow itself (the soft limit of
  /// `RLIMIT_NOFILE` becomes the hard one, getrlimit(2)), and answers how many; nil when that
  /// cannot be known.
  package static func raiseOpenFiles() -> Int? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
    var raised = limit
    raised.rlim_cur = limit.rlim_max
    if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
    return Int(clamping: limit.rlim_cur)
  }

  /// Gives memory that nobody uses back (malloc_trim(3)).
  package static func returnMemory() { malloc_trim(0) }
}
