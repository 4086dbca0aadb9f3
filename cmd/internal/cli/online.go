package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// reachable is the result of one question.
type reachable struct {
	What  string `json:"what"`
	Error string `json:"error,omitempty"`
	Took  int64  `json:"ms"`
}

// onlineTimeout bounds each question.
const onlineTimeout = 10 * time.Second

// askAll checks every upstream and the memory.
func askAll(ctx context.Context, cfg *config.Config, ask AskMemory) (list []reachable) {
	try := func(what string, f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, onlineTimeout)
		defer cancel()
		r, began := reachable{What: what}, time.Now()
		if err := f(ctx); err != nil {
			r.Error = err.Error()
		}
		r.Took = time.Since(began).Milliseconds()
		list = append(list, r)
	}
	all := cfg.Upstreams()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		base := all[name]
		try("upstream."+name+" "+base, func(ctx context.Context) error { return reach(ctx, base) })
	}
	if cfg.RemoteMemory() {
		try("memory.endpoint "+cfg.Memory.Endpoint, func(ctx context.Context) error { return ask(ctx, cfg) })
	}
	return list
}

// reach returns an error unless a server answers at an address. Any status counts as an
// answer, except 508 Loop Detected, which the proxy returns for its own requests.
func reach(ctx context.Context, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/models", nil)
	if err != nil {
		return err
	}
	client := http.Client{CheckRedirect: graphiti.NoRedirect}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%w; correct the address, or start the server there", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // ends the answer properly
	if resp.StatusCode == http.StatusLoopDetected {
		return fmt.Errorf("it is the proxy's own address; write the provider's")
	}
	return nil
}
