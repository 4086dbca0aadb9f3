package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// consent is what a person agreed to: that conversations go to an endpoint.
type consent struct {
	Endpoint string    `json:"endpoint"`
	Since    time.Time `json:"since"`
}

// noteConsent keeps for which endpoint consent was given, and since when.
func noteConsent(cfg *config.Config) (*consent, error) {
	path := consentFile(cfg)
	endpoint := withoutUser(cfg.Memory.Endpoint)
	var c consent
	b, err := os.ReadFile(path) // #nosec G304 -- our own file
	if err == nil && json.Unmarshal(b, &c) == nil && c.Endpoint == endpoint {
		return &c, nil
	}
	c = consent{endpoint, time.Now().UTC().Truncate(time.Second)}
	if b, err = json.Marshal(c); err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return nil, dirError{fmt.Errorf("data_dir: note consent: %w", err)}
	}
	return &c, nil
}

func consentFile(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "consent.json") }

// withdrawConsent forgets that it was given: given again, it counts from then
// on.
func withdrawConsent(cfg *config.Config) error {
	if err := os.Remove(consentFile(cfg)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data_dir: withdraw consent: %w", err)
	}
	return nil
}

// moved reports whether a configuration that is read while the proxy runs
// names another memory than the one that it runs with, which consent was given
// for.
func moved(running, read *config.Config) bool {
	return running.RemoteMemory() && read.RemoteMemory() &&
		withoutUser(running.Memory.Endpoint) != withoutUser(read.Memory.Endpoint)
}

// withoutUser is an address without the credentials in it.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}
