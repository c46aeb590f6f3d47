import Glibc
import HTTP2
import Testing

@Suite(.serialized) struct SystemResourcesTests {
  @Test func openFilesAreAsManyAsThereMayBe() throws {
    let count = try #require(SystemResources.raiseOpenFiles())
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    #expect(count == Int(clamping: limit.rlim_max) && limit.rlim_cur == limit.rlim_max)
  }

  /// To its end, or until there is too much: what is too much is for the caller to say.
  @Test(arguments: [0, 5, 100, 101, 60_000])
  func standardInputIsReadToItsEnd(count: Int) throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    // A pipe takes 64 KiB (pipe(7)).
    #expect(write(ends[1], [UInt8](repeating: 7, count: count), count) == count)
    close(ends[1])
    let before = dup(STDIN_FILENO)
    #expect(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO)
    close(ends[0])
    defer {
      dup2(before, STDIN_FILENO)
      close(before)
    }
    #expect(
      SystemResources.readToEnd(nil, limitBytes: 100) == [UInt8](repeating: 7, count: count))
  }

  /// A pipe that a shell makes of `<(…)` has a path, and no size.
  @Test func aPipeWithAPathIsReadToItsEnd() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { close(ends[0]) }
    #expect(write(ends[1], [1, 2, 3] as [UInt8], 3) == 3)
    close(ends[1])
    #expect(SystemResources.readToEnd("/dev/fd/\(ends[0])") == [1, 2, 3])
    #expect(SystemResources.readToEnd("/dev/fd") == nil)
    #expect(SystemResources.readToEnd("/dev/fd/nothing") == nil)
  }
}
