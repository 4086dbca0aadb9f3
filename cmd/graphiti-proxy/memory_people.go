package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryPeopleCommand() *cobra.Command {
	c, in := described("memory-people"), service.ListPeople.Default
	cli.InputFlags(c, &in)
	return operation(c, service.ListPeople, openMemoryFiles, &in, nil, func(w, _ io.Writer, all *service.PeopleList) {
		var t terminal.Table
		t.Row("NAME", "SELECTED BY", "LAST", "MESSAGES", "SIZE", "WAITING", "STATE")
		for i := range all.People {
			p := &all.People[i]
			state, by := cmp.Or(p.Doubt, "registered"), "--user "+p.Means.User
			switch {
			case p.Off:
				state = "memory off"
			case !p.Registered:
				state = "not registered"
			}
			if p.Means.Group != "" {
				by = "--group " + p.Means.Group
			}
			t.Row(p.Name, by, minute(p.Last), p.Messages, p.Size(), p.Waiting, state)
		}
		t.Print(w)
		printMore(w, all.AllPeople-len(all.People))
	})
}

func newMemoryReceiptCommand() *cobra.Command {
	c := described("memory-receipt")
	var file, key string
	c.Flags().Var(cli.Text(&file), "check", "check the receipts in this file")
	c.Flags().Var(cli.Text(&key), "key", "the public key that signed them, instead of this data directory's")
	c.RunE = configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		key = cmp.Or(key, service.ReceiptKey(datadir.Secret(cfg.DataDir)))
		switch {
		case key == "":
			return errors.New("this data directory has no key yet; name the key of the proxy that signed the receipts with --key")
		case file != "":
			return checkReceipts(c.OutOrStdout(), file, key)
		}
		fmt.Fprintln(c.OutOrStdout(), key)
		return nil
	})
	return c
}

// checkReceipts prints the receipts in a file that a key signed, until another one. It returns an
// error if there is one, or no receipt.
func checkReceipts(w io.Writer, file, key string) error {
	b, err := os.ReadFile(file) // #nosec G304 -- the user's own
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	n := 0
	for ; d.More(); n++ {
		var r service.Receipt
		err := d.Decode(&r)
		if err == nil {
			err = r.Check(key)
		}
		if err != nil {
			return fmt.Errorf("receipt %d of %s: %w", n+1, file, err)
		}
		fmt.Fprintf(w, "valid: %s: %s of %s: %d messages, %d queued turns, %d blocks; Graphiti: %s; backups: %s\n",
			minute(r.Time), r.Group, r.Owner, r.Messages, r.Queue, r.Blocks, r.Graphiti, r.Backups)
	}
	if n == 0 {
		return fmt.Errorf("%s has no receipt", file)
	}
	return nil
}

// writeReceipts writes the receipts of deletions to a file.
func writeReceipts(file string, done []service.Forgotten) error {
	var b bytes.Buffer
	for i := range done {
		if done[i].Receipt == nil {
			return fmt.Errorf("%s: no receipt; the log of the proxy has the reason", done[i].Group)
		}
		_ = json.NewEncoder(&b).Encode(done[i].Receipt) // strings and numbers only
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
