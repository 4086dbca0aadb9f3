package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// errNoProxy says that nothing listens where the admin side should be.
var errNoProxy = errors.New("no proxy answers")

// maxAdminAnswer bounds an answer of the admin side.
const maxAdminAnswer = 64 << 20

// ask makes one call to the admin side of the running proxy; in may be nil.
func ask(ctx context.Context, cfg *config.Config, method, path string, in, out any) error {
	if cfg.Admin.Listen == "off" {
		return errors.New("admin.listen is off, so the proxy cannot be asked")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask the admin side: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+cfg.Admin.Listen+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the admin side: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if cfg.Admin.Token != "" {
		req.Header.Set("Authorization", "Bearer "+cfg.Admin.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w on %s; start one with graphiti-proxy serve, or name its admin.listen", errNoProxy, cfg.Admin.Listen)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err != nil {
		return fmt.Errorf("read the admin side's answer: %w", err)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return errors.New("the admin side refuses the token; set admin.token to the proxy's")
	}
	var refusal struct {
		Error string `json:"error"`
	}
	if resp.StatusCode != http.StatusOK && json.Unmarshal(answer, &refusal) == nil && refusal.Error != "" {
		return errors.New(refusal.Error)
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(answer, out) != nil {
		return fmt.Errorf("what answers on %s is not graphiti-proxy, or another version of it", cfg.Admin.Listen)
	}
	return nil
}
