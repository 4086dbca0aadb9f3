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

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// ownerless is the kind of a fault in the file owner.
const ownerless sqlite.Kind = "does not say whose memory this is"

var (
	ownerForm = regexp.MustCompile(`^[a-z_]+:[!-~]{1,200}$`)
	madeHere  = regexp.MustCompile(`^user:[a-z2-7]{26}$`) // as newOwner makes it
)

func newOwner() string { return "user:" + strings.ToLower(rand.Text()) }

func ownerFile(dir string) string { return filepath.Join(dir, "owner") }

// KnownOwner returns the owner's key if there is one already, and otherwise "".
func KnownOwner(dir string) string {
	owner, _ := readOwner(dir)
	return owner
}

// readOwner reads the owner's key; the error says why there is none.
func readOwner(dir string) (string, error) {
	b, err := os.ReadFile(ownerFile(dir)) // #nosec G304 -- our own file
	switch owner := strings.TrimSpace(string(b)); {
	case errors.Is(err, os.ErrNotExist):
		return "", errors.New("it is missing")
	case err != nil:
		return "", fault(dir, err)
	case owner == "":
		return "", errors.New("it is empty")
	case !ownerForm.MatchString(owner):
		return "", errors.New("what it holds is no owner")
	default:
		return owner, nil
	}
}

// Owner returns the key of this machine's person, made once and stored in a file. When
// the file does not have it, held names the people whose memory the directory holds,
// with "" for somebody unknown: if that is one person whose key this directory made,
// they are the owner, and recovered is true; if it is nobody, Owner makes a new key.
// Otherwise it fails: with a new key nobody would find that memory.
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
		return "", false, fmt.Errorf("read whose memory this is: %w", err)
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
		return "", false, &sqlite.Fault{Path: ownerFile(dir), Kind: ownerless, Since: time.Now(), Err: why, Remedy: ownerRemedy(who)}
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = WriteFile(ownerFile(dir), []byte(owner+"\n"))
	}
	if err != nil {
		return "", false, fault(dir, err)
	}
	return owner, recovered, nil
}

// ownerRemedy returns the remedy, with the names of possible owners.
func ownerRemedy(who []string) string {
	const most = 3
	named := slices.DeleteFunc(slices.Clone(who), func(key string) bool { return !ownerForm.MatchString(key) })
	to := "who that was"
	if len(named) > 0 {
		to = strings.Join(named[:min(len(named), most)], " or ")
	}
	if len(named) > most {
		to += fmt.Sprintf(" or one of %d others", len(named)-most)
	}
	return "put the file back from a backup, or set identity.owner to " + to + " (a new name, such as user:me, begins an empty memory), and restart the proxy"
}
