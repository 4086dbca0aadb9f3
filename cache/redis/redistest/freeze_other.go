//go:build !unix

package redistest

// Freeze returns false: this system cannot stop a process.
func (s *Server) Freeze() bool { return false }

// Thaw ends a Freeze.
func (s *Server) Thaw() {}
