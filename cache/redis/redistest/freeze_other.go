//go:build !unix

package redistest

// Freeze cannot be done here.
func (s *Server) Freeze() bool { return false }

// Thaw ends a Freeze.
func (s *Server) Thaw() {}
