package datadir

import (
	"errors"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Each takes joined errors apart.
func Each(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // what was joined, and not what is wrapped
		return all.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Error says that the directory itself cannot be used.
type Error struct{ Err error }

func (e Error) Error() string { return e.Err.Error() + "; " + DirRemedy }
func (e Error) Unwrap() error { return e.Err }

// IsFault reports whether an error is one of data_dir or of a file in it.
func IsFault(err error) bool {
	var dir Error
	var t *sqlite.Trouble
	return errors.As(err, &dir) || errors.As(err, &t) || sqlite.IsFault(err)
}

// DirRemedy is what to do about a directory that cannot be used.
const DirRemedy = "choose another with data_dir, or make it readable and writable for the proxy's user, and restart the proxy"

// Remedy says what to do about a file that cannot be used.
func Remedy(err error) string {
	var t *sqlite.Trouble
	if errors.As(err, &t) {
		return t.Remedy
	}
	return DirRemedy
}

// What is an error without its remedy.
func What(err error) string {
	var t *sqlite.Trouble
	if errors.As(err, &t) {
		return t.What()
	}
	if dir := (Error{}); errors.As(err, &dir) {
		return dir.Err.Error()
	}
	return err.Error()
}
