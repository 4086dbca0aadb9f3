package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// ownerless is the kind of a fault in the owner file.
const ownerless database.FaultKind = "does not name the owner of the memory"

const ownerRemedy = "put the file back from a backup, or set identity.owner to the owner (a new name, such as user:me, begins an empty memory), and restart the proxy"

var (
	ownerForm = regexp.MustCompile(`^[a-z_]+:[!-~]{1,200}$`)
	madeHere  = regexp.MustCompile(`^user:[a-z2-7]{26}$`) // format of newOwner
)

func newOwner() string { return "user:" + strings.ToLower(rand.Text()) }

func ownerFile(dir string) string { return filepath.Join(dir, "owner") }

// readOwner returns the stored owner's key, or an error with the reason if it is missing.
func readOwner(dir string) (string, error) {
	b, err := readOwn(ownerFile(dir))
	switch owner := strings.TrimSpace(string(b)); {
	case errors.Is(err, os.ErrNotExist):
		return "", errors.New("it is missing")
	case err != nil:
		return "", fault(dir, err)
	case owner == "":
		return "", errors.New("it is empty")
	case !ownerForm.MatchString(owner):
		return "", errors.New("its content is not an owner")
	default:
		return owner, nil
	}
}

// Owner returns the key of this machine's person, creating and storing it if necessary.
// If the file is missing or damaged, held returns the people with memories in the
// directory, with "" for an unknown person. A single person with a key made here becomes
// the owner, and recovered is true. Without people, Owner makes a new key. Otherwise it
// fails, because a new key would make the existing memories unreachable.
func Owner(dir string, held func() ([]string, error)) (owner string, recovered bool, err error) {
	owner, why := readOwner(dir)
	if why == nil {
		return owner, false, nil
	}
	if sqlite.IsFault(why) {
		return "", false, why
	}
	who, err := held()
	if err != nil {
		return "", false, fmt.Errorf("read the owner of the memory: %w", err)
	}
	slices.Sort(who)
	who = slices.Compact(who)
	made := slices.DeleteFunc(slices.Clone(who), func(key string) bool { return !madeHere.MatchString(key) })
	switch {
	case len(who) == 0:
		owner = newOwner()
	case len(made) == 1:
		owner, recovered = made[0], true
	default:
		return "", false, &database.Fault{Path: ownerFile(dir), Kind: ownerless, Since: time.Now(), Err: why, Remedy: ownerRemedy}
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = WriteFile(ownerFile(dir), []byte(owner+"\n"))
	}
	if err != nil {
		return "", false, fault(dir, err)
	}
	return owner, recovered, nil
}
