package wire

// MoreFiles is what helps where there are too few file descriptors.
const MoreFiles = "raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or lower limits.connections"

// TooFew reports whether room for clients is far below the limit of connections:
// a limit that is never reached in practice is no reason to warn.
func TooFew(room, connections int) bool { return room < connections/2 }
