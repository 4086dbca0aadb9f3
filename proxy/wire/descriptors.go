package wire

// MoreFiles is the remedy for too few file descriptors.
const MoreFiles = "raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or lower limits.connections"

// TooFew reports whether there are descriptors for less than half of the connections
// that the limit allows: few operators ever reach the limit.
func TooFew(room, connections int) bool { return room < connections/2 }
