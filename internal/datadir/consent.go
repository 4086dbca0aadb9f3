package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Consent is a person's consent to send conversations to an endpoint.
type Consent struct {
	Endpoint string    `json:"endpoint"`
	Since    time.Time `json:"since"`
}

// NoteConsent stores the endpoints with consent, and the time of each consent. Other
// consents are withdrawn: a new one starts at its own time. added are the new endpoints.
func NoteConsent(dir string, endpoints []string) (all []Consent, added []string, err error) {
	path := filepath.Join(dir, "consent.json")
	var before []Consent
	if b, err := readOwn(path); err != nil || json.Unmarshal(b, &before) != nil {
		before = nil
	}
	for _, e := range endpoints {
		i := slices.IndexFunc(before, func(c Consent) bool { return c.Endpoint == e })
		if i >= 0 {
			all = append(all, before[i])
			continue
		}
		all, added = append(all, Consent{e, time.Now().UTC().Truncate(time.Second)}), append(added, e)
	}
	switch {
	case len(all) == 0:
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("data_dir: withdraw consent: %w", err)
		}
		return nil, nil, nil
	case slices.Equal(all, before):
		return all, nil, nil
	}
	b, err := json.Marshal(all)
	if err == nil {
		err = WriteFile(path, append(b, '\n'))
	}
	if err != nil {
		return nil, nil, fault(dir, fmt.Errorf("note consent: %w", err))
	}
	return all, added, nil
}
