package datadir

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// unusable is the kind of a fault in the directory itself.
const unusable database.FaultKind = "cannot be used"

// fault is an error of the directory itself.
func fault(dir string, err error) *database.Fault {
	return &database.Fault{
		Path: dir, Kind: unusable, Since: time.Now(), Err: err,
		Remedy: "choose another with data_dir, or make it readable and writable for the proxy's user, and restart the proxy",
	}
}

// checkEvery is the interval of Files's checks. Writers to a database notice a fault
// immediately.
const checkEvery = time.Second

// Database is an open database of the directory.
type Database interface {
	Check() *database.Fault
	Fault() *database.Fault
}

// Files tracks whether the directory's databases are usable. The zero value has no
// databases.
type Files struct {
	mu     sync.Mutex // protects open and broken
	open   []Database
	broken []*database.Fault // failed to open

	stop  chan struct{}
	ended sync.WaitGroup
}

// Broken records errors of opening databases. An error that is not a database fault
// becomes a fault of the directory.
func (f *Files) Broken(dir string, errs ...error) {
	for _, err := range errs {
		t := &database.Fault{}
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

// Opened clears the recorded errors, after success or before another attempt.
func (f *Files) Opened() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = nil
}

// NotOpened returns the faults of databases that failed to open.
func (f *Files) NotOpened() []*database.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.broken)
}

// Watch checks open databases until Close. It calls changed with the fault when one
// becomes unusable, and with nil when all are usable again.
func (f *Files) Watch(open []Database, changed func(wrong *database.Fault)) {
	f.mu.Lock()
	f.open, f.stop = open, make(chan struct{})
	f.mu.Unlock()
	f.ended.Go(func() { f.watch(changed) }) // ends with Close
}

func (f *Files) watch(changed func(wrong *database.Fault)) {
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

// check returns the first permanent fault.
func (f *Files) check() (wrong *database.Fault) {
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

// Faults returns all faults of the databases. A permanent one disables the memory.
func (f *Files) Faults() []*database.Fault {
	f.mu.Lock()
	all, open := slices.Clone(f.broken), f.open
	f.mu.Unlock()
	for _, db := range open {
		if t := db.Fault(); t != nil && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}
