package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// TryConnection tests a memory service, and prints the results. With smoke it also checks that the
// service stores a message.
func TryConnection(ctx context.Context, w io.Writer, m MemoryService, cfg *config.Config, smoke, asJSON bool) error {
	var all []remote.Check
	failed := 0
	report := func(c remote.Check) {
		all = append(all, c)
		if !c.OK {
			failed++
		}
		if !asJSON {
			printCheck(w, c)
		}
	}
	if !asJSON {
		fmt.Fprintln(w, "Graphiti at "+cfg.Memory.Endpoint)
	}
	m.Check(ctx, report)
	if smoke && (len(all) == 0 || all[0].OK) { // the first check is that of the health
		remote.Smoke(ctx, m.Memory(), report)
	}
	if !cfg.Consented() {
		report(remote.Check{Name: "consent: not given", OK: true, Remedy: "set memory.consent to " + cfg.Memory.Endpoint + "; until then the proxy forwards requests without memory"})
	}
	if asJSON {
		if err := terminal.JSON(w, all); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(all))
	}
	return nil
}

func printCheck(w io.Writer, c remote.Check) {
	mark := "✓"
	switch {
	case !c.OK:
		mark = "✗"
	case c.Remedy != "":
		mark = "!"
	}
	fmt.Fprintf(w, "%s %-22s %6d ms\n", mark, c.Name, c.Took.Milliseconds())
	if c.Detail != "" {
		fmt.Fprintf(w, "    %s\n", c.Detail)
	}
	if c.Remedy != "" {
		fmt.Fprintf(w, "    to do: %s\n", c.Remedy)
	}
}
