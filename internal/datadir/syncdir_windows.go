package datadir

// syncDir does nothing: a directory cannot be flushed here.
func syncDir(string) error { return nil }
