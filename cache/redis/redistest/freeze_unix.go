//go:build unix

package redistest

import "syscall"

// Freeze has it hang until Thaw, where that is possible.
func (s *Server) Freeze() bool {
	return s.real != nil && s.real.Process.Signal(syscall.SIGSTOP) == nil
}

// Thaw ends a Freeze.
func (s *Server) Thaw() { _ = s.real.Process.Signal(syscall.SIGCONT) }
