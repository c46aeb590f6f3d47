import FoundationEssentials

/// How much memory the container or the service may have that the process runs in (Linux kernel,
/// "Control Group v2", `memory.max`).
enum ContainerMemory {
  /// In megabytes, the least of its group and those around it; nil when none has a limit, and with
  /// control groups of version 1.
  static func limit(
    group: String = "/proc/self/cgroup", root: String = "/sys/fs/cgroup"
  ) -> Int? {
    let lines = (try? String(contentsOfFile: group, encoding: .utf8))?.split(separator: "\n")
    guard let path = lines?.first(where: { $0.hasPrefix("0::/") })?.dropFirst(4) else { return nil }
    var (folder, limits) = (root, [Int]())
    for name in [""] + path.split(separator: "/").map({ "/" + $0 }) {
      folder += name
      let text = try? String(contentsOfFile: folder + "/memory.max", encoding: .utf8)
      // Without a limit it says "max".
      limits += text?.split(separator: "\n").first.flatMap { Int($0) }.map { [$0 >> 20] } ?? []
    }
    return limits.min()
  }
}
