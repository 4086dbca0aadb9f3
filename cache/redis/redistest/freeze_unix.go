//go:build unix

package redistest

import "syscall"

// Freeze stops the server until Thaw. It returns false with miniredis.
func (s *Redis) Freeze() bool {
	return s.real != nil && s.real.Process.Signal(syscall.SIGSTOP) == nil
}

// Thaw ends a Freeze.
func (s *Redis) Thaw() { _ = s.real.Process.Signal(syscall.SIGCONT) }
