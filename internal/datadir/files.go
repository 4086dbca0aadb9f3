package datadir

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// unusable is the kind of a fault in the directory itself.
const unusable sqlite.Kind = "cannot be used"

// fault is an error of the directory itself.
func fault(dir string, err error) *sqlite.Fault {
	return &sqlite.Fault{
		Path: dir, Kind: unusable, Since: time.Now(), Err: err,
		Remedy: "choose another with data_dir, or make it readable and writable for the proxy's user, and restart the proxy",
	}
}

// checkEvery is how often Files checks the databases. Whoever writes to one notices a
// fault at once.
const checkEvery = time.Second

// Database is an open database of the directory.
type Database interface {
	Check() *sqlite.Fault
	Fault() *sqlite.Fault
}

// Files knows whether the databases of the directory can be used. The zero value knows
// no database.
type Files struct {
	mu     sync.Mutex // guards open and broken
	open   []Database
	broken []*sqlite.Fault // could not be opened

	stop  chan struct{}
	ended sync.WaitGroup
}

// Broken notes why databases could not be opened. An error that is no fault of a
// database becomes one of the directory.
func (f *Files) Broken(dir string, errs ...error) {
	for _, err := range errs {
		t := &sqlite.Fault{}
		if !errors.As(err, &t) {
			t = fault(dir, err)
		}
		at := *t
		at.Since = time.Now()
		f.mu.Lock()
		f.broken = append(f.broken, &at)
		f.mu.Unlock()
	}
}

// Opened notes that the databases could be opened, or were tried again.
func (f *Files) Opened() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = nil
}

// NotOpened returns the faults of databases that could not be opened.
func (f *Files) NotOpened() []*sqlite.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.broken)
}

// Watch checks open databases until Close. It calls changed with the fault when one
// can no longer be used, and with nil when all can be used again.
func (f *Files) Watch(open []Database, changed func(wrong *sqlite.Fault)) {
	f.mu.Lock()
	f.open, f.stop = open, make(chan struct{})
	f.mu.Unlock()
	f.ended.Go(func() { f.watch(changed) }) // ends with Close
}

func (f *Files) watch(changed func(wrong *sqlite.Fault)) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for usable := true; ; {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		if wrong := f.check(); usable != (wrong == nil) {
			usable = wrong == nil
			changed(wrong)
		}
	}
}

// check returns the first of what is wrong for good.
func (f *Files) check() (wrong *sqlite.Fault) {
	for _, db := range f.open {
		if t := db.Check(); t.Lasting() && wrong == nil {
			wrong = t
		}
	}
	return wrong
}

// Close ends Watch.
func (f *Files) Close() {
	close(f.stop)
	f.ended.Wait()
}

// Faults returns all faults of the databases. With a lasting one there is no memory.
func (f *Files) Faults() []*sqlite.Fault {
	f.mu.Lock()
	all, open := slices.Clone(f.broken), f.open
	f.mu.Unlock()
	for _, db := range open {
		if t := db.Fault(); t != nil {
			all = append(all, t)
		}
	}
	return all
}
