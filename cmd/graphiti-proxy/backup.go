package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

func newBackupCommand() *cobra.Command {
	c := described("backup")
	check := ""
	c.Args = cobra.MaximumNArgs(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		if check != "" {
			if len(args) > 0 {
				return cli.Usage(errors.New("--check reads a backup: leave out the new file"))
			}
			at, err := datadir.CheckBackup(c.Context(), check, service.TryFiles)
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s of %s is whole\n", check, at.Local().Format(time.DateTime))
			}
			return err
		}
		cfg, err := withFiles(c)
		if err == nil {
			err = misnamed(cfg)
		}
		if err != nil {
			return err
		}
		path := "graphiti-proxy-" + time.Now().Format("2006-01-02T1504") + ".zip"
		if len(args) > 0 {
			path = args[0]
		}
		if err := datadir.WriteBackup(c.Context(), cfg.DataDir, path); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s written and checked; it contains conversations in plain text\n", path)
		return nil
	}
	c.Flags().StringVar(&check, "check", "", "check this backup instead of writing one")
	return c
}

func newRestoreCommand() *cobra.Command {
	c := described("restore")
	c.Args = cli.NeedsOne("the backup to restore, such as mine.zip")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := withFiles(c)
		if err != nil {
			return err
		}
		lock, err := datadir.Acquire(cfg.DataDir, datadir.Command)
		if err != nil {
			return err
		}
		at, err := datadir.RestoreBackup(c.Context(), args[0], cfg.DataDir, service.TryFiles)
		if err = errors.Join(err, lock.Unlock()); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "the memory of %s is in %s; start the proxy\n", at.Local().Format(time.DateTime), cfg.DataDir)
		return nil
	}
	return c
}

// withFiles returns the configuration of a memory in files.
func withFiles(c *cobra.Command) (*config.Config, error) {
	cfg, err := cli.LoadConfig(c)
	if err == nil && cfg.State.Backend == "postgres" {
		err = errors.New("the memory is in Postgres: use its own tools, such as pg_dump and pg_restore")
	}
	return cfg, err
}

// backupCheck is the interval of checks for a due backup.
const backupCheck = 10 * time.Minute

// startBackups writes backups as the settings schedule them, until the app is shut down.
func (a *app) startBackups() {
	a.Repeat("backups", backupCheck, func(ctx context.Context) {
		cfg := a.live.Load()
		if cfg.Backup.Every <= 0 {
			return
		}
		to := cfg.Backup.Dir
		if to == "" {
			to = filepath.Join(a.cfg.DataDir, "backups")
		}
		path, err := datadir.BackUpDue(ctx, a.cfg.DataDir, to, cfg.Backup.Every, cfg.Backup.Keep, time.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			a.log.Error("write a backup failed", "error", err, "next_attempt_in", backupCheck.String())
		case path != "":
			a.log.Info("backup written", "file", path)
		}
	})
}
