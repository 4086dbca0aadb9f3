package database

import (
	"fmt"
	"time"
)

// FaultKind is the kind of a Fault.
type FaultKind string

// The kinds of faults. Unwritten, Busy and Away end by themselves, when a write succeeds or the
// database can be opened; a person must end all others.
const (
	Damaged   FaultKind = "is damaged"
	Other     FaultKind = "is of another version"
	Denied    FaultKind = "cannot be opened"
	Gone      FaultKind = "was deleted or replaced while the proxy used it"
	Failing   FaultKind = "cannot be read: its disk or file system fails"
	Unwritten FaultKind = "cannot be written"
	Busy      FaultKind = "is in use by another program"
	Away      FaultKind = "cannot be used"
)

// Fault is the error of a database that cannot be used, with its cause and its remedy.
type Fault struct {
	Path   string // of a file, or the setting of a server
	Kind   FaultKind
	Since  time.Time
	Remedy string
	Err    error
}

// Error returns one line: file, kind, cause and remedy.
func (t *Fault) Error() string { return t.What() + "; " + t.Remedy }

// What returns the place and the problem, without the remedy.
func (t *Fault) What() string { return fmt.Sprintf("%s %s: %v", t.Path, t.Kind, t.Err) }

// Unwrap returns the cause.
func (t *Fault) Unwrap() error { return t.Err }

// Lasting reports whether the database can be neither read nor written until a person acts. A
// nil Fault is not lasting.
func (t *Fault) Lasting() bool {
	return t != nil && t.Kind != Unwritten && t.Kind != Busy && t.Kind != Away
}
