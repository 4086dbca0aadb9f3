//go:build !linux

package datadir

// changes returns nil: this system does not report changes in directories.
func changes(string) (changed <-chan struct{}, end func()) { return nil, func() {} }
