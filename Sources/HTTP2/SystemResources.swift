internal import CNghttp2
internal import Glibc

/// System resources of the process, here because C wants pointers for them.
package enum SystemResources {
  /// Raises the soft limit of open files to the hard one (`RLIMIT_NOFILE`, getrlimit(2)); returns
  /// it, or nil when unknown.
  package static func raiseOpenFiles() -> Int? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
    var raised = limit
    raised.rlim_cur = limit.rlim_max
    if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
    return Int(clamping: limit.rlim_cur)
  }

  /// Reads a file, a pipe or (nil) standard input to its end, or until there is more than the
  /// limit; nil when unreadable.
  package static func readToEnd(_ path: String?, limitBytes: Int = .max) -> [UInt8]? {
    let input = path.map { open($0, O_RDONLY | O_CLOEXEC) } ?? STDIN_FILENO
    guard input >= 0 else { return nil }
    defer { if path != nil { close(input) } }
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while all.count <= limitBytes {
      let count = read(input, &piece, piece.count)
      if count == 0 { break }
      if count > 0 { all += piece.prefix(count) }
      if count < 0, errno == EAGAIN {
        var waiting = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, -1)
      } else if count < 0, errno != EINTR {
        return nil
      }
    }
    return all
  }

  /// Returns unused memory to the system (malloc_trim(3)).
  package static func returnMemory() { malloc_trim(0) }
}
