package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/connect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// finding is the result of doctor for one client.
type finding struct {
	connect.Setup
	Last   string `json:"last_request,omitempty"` // time
	Memory string `json:"memory,omitempty"`       // outcome of the last request
	Reason string `json:"reason,omitempty"`       // in words
}

// diagnosis is the result of doctor.
type diagnosis struct {
	Proxy   string    `json:"proxy"`
	Error   string    `json:"error,omitempty"` // of the proxy
	Clients []finding `json:"clients"`
}

func newDoctorCommand() *cobra.Command {
	c := described("doctor")
	c.Args, c.ValidArgsFunction, c.RunE = cobra.ArbitraryArgs, completeClients, diagnose
	cli.JSONFlag(c)
	return c
}

func diagnose(c *cobra.Command, args []string) error {
	cfg, m, clients, err := machineFor(c, args)
	if err != nil {
		return err
	}
	var states []connect.Setup
	for _, client := range clients {
		states = append(states, m.Setup(client))
	}
	if len(clients) == 0 {
		states = m.List()
	}
	d := diagnosis{Proxy: m.Proxy.Base, Clients: []finding{}}
	var passed service.Passed
	running, err := cli.FindProxyToShow(c.Context(), target(cfg))
	if err == nil {
		passed, err = cli.Ask(c.Context(), running, service.Requests, service.RequestsRequest{Limit: 1000})
	}
	if err != nil {
		d.Error = err.Error()
	}
	ill := d.Error != ""
	for _, s := range states {
		f, client := finding{Setup: s}, connect.Find(s.Client)
		trial, _ := os.ReadFile(m.TrialFile(client)) // each connected client has a trial
		for _, r := range slices.Backward(passed.Requests) {
			if r.API != "" && client.Sends(r.Client) && (r.ID != string(trial) || r.Reason == string(inject.ReasonPlace)) {
				if f.Last, f.Memory = r.Time, r.Memory; r.Reason != "" {
					f.Reason = service.InWords(r.Reason)
				}
				if r.Reason == string(inject.ReasonPlace) {
					f.Problems = append(f.Problems, connectedOnly)
				}
				break
			}
		}
		ill = ill || len(f.Problems) > 0
		d.Clients = append(d.Clients, f)
	}
	if err := cli.Output(c, d, func(w io.Writer) { printDiagnosis(w, &d) }); err != nil {
		return err
	}
	if ill {
		return errors.New("something keeps requests from the memory; see the lines marked ✗")
	}
	return nil
}

func printDiagnosis(w io.Writer, d *diagnosis) {
	if d.Error != "" {
		fmt.Fprintf(w, "✗ the proxy on %s: %s\n", d.Proxy, terminal.Printable(d.Error))
	} else {
		fmt.Fprintf(w, "✓ the proxy on %s answers\n", d.Proxy)
	}
	for _, f := range d.Clients {
		switch {
		case f.Through:
			fmt.Fprintf(w, "✓ %s goes through the proxy\n", f.Client)
		case len(f.Problems) == 0:
			fmt.Fprintf(w, "- %s is not connected: graphiti-proxy connect %s\n", f.Client, f.Client)
		}
		for _, problem := range f.Problems {
			fmt.Fprintf(w, "✗ %s: %s\n", f.Client, terminal.Printable(problem))
		}
		if f.Last == "" {
			continue
		}
		line := "  last request at " + f.Last + ": " + f.Memory
		if f.Reason != "" {
			line += ", because " + f.Reason
		}
		fmt.Fprintln(w, terminal.Printable(line))
	}
}
