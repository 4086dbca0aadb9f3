package main

import (
	"encoding/json"
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
	path := filepath.Join(cfg.DataDir, "consent.json")
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
		return nil, fmt.Errorf("data_dir: note consent: %w", err)
	}
	return &c, nil
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
