//go:build !unix

package redistest

// Freeze returns false: this system cannot stop a process.
func (s *Redis) Freeze() bool { return false }

// Thaw ends a Freeze.
func (s *Redis) Thaw() {}
