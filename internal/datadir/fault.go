package datadir

import (
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// unusable is the kind of a fault in the directory itself.
const unusable database.FaultKind = "cannot be used"

// FaultOf returns the fault of a database in an error, or else a fault of the directory itself.
func FaultOf(dir string, err error) *database.Fault {
	if t := (*database.Fault)(nil); errors.As(err, &t) {
		at := *t
		at.Since = time.Now()
		return &at
	}
	return fault(dir, err)
}

// fault is an error of the directory itself.
func fault(dir string, err error) *database.Fault {
	return &database.Fault{
		Path: dir, Kind: unusable, Since: time.Now(), Err: err,
		Remedy: "choose another with data_dir, or make it readable and writable for the proxy's user, and restart the proxy",
	}
}
