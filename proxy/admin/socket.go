package admin

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// SocketFile is the Unix socket in a data directory through which commands call its proxy. Only
// the proxy's user can open it, so neither side needs a secret.
const SocketFile = "admin.sock"

// listenToCommands opens the socket in a data directory, whose lock the caller holds.
func listenToCommands(dir string) (net.Listener, error) {
	path := filepath.Join(dir, SocketFile)
	_ = os.Remove(path) // of a process that was killed
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen to commands: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen to commands: %w", err)
	}
	return ln, nil
}

// fromSocket makes the operator the caller on connections through the socket.
func fromSocket(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*net.UnixConn); ok {
		ctx = context.WithValue(ctx, callerKey{}, service.Operator)
	}
	return ctx
}
