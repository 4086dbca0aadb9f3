package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Consent is a person's consent to send conversations to an endpoint.
type Consent struct {
	Endpoint string    `json:"endpoint"`
	Since    time.Time `json:"since"`
}

// NoteConsent stores the endpoint and the time of a consent. first reports that the
// consent is new.
func NoteConsent(dir, endpoint string) (c *Consent, first bool, err error) {
	path := consentFile(dir)
	c = new(Consent)
	b, err := os.ReadFile(path) // #nosec G304 -- our own file
	if err == nil && json.Unmarshal(b, c) == nil && c.Endpoint == endpoint {
		return c, false, nil
	}
	c = &Consent{endpoint, time.Now().UTC().Truncate(time.Second)}
	if b, err = json.Marshal(c); err == nil {
		err = WriteFile(path, append(b, '\n'))
	}
	if err != nil {
		return nil, false, fault(dir, fmt.Errorf("note consent: %w", err))
	}
	return c, true, nil
}

func consentFile(dir string) string { return filepath.Join(dir, "consent.json") }

// WithdrawConsent deletes the consent. A new consent starts at its own time.
func WithdrawConsent(dir string) error {
	if err := os.Remove(consentFile(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data_dir: withdraw consent: %w", err)
	}
	return nil
}
