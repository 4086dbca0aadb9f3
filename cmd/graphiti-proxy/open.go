package main

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

func newOpenCommand() *cobra.Command {
	c := described("open")
	c.RunE = running(func(c *cobra.Command, _ *config.Config, proxy *cli.AdminClient) error {
		s, err := cli.Ask(c.Context(), proxy, service.Status, service.StatusRequest{})
		if err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), s.Inspector)
		variable := cli.Variable(c)
		if err := browse(runtime.GOOS, variable("DISPLAY")+variable("WAYLAND_DISPLAY"), s.Inspector); err != nil {
			fmt.Fprintln(c.ErrOrStderr(), err)
		}
		return nil
	})
	return c
}

// browse opens an address in the person's browser, and does not wait for the browser.
// display names the screen, on systems that may have none.
func browse(system, display, url string) error {
	line := []string{"xdg-open", url}
	switch {
	case system == "darwin":
		line[0] = "open"
	case system == "windows":
		line = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	case display == "":
		return errors.New("no display on this machine; open the address in a browser")
	}
	opener := exec.Command(line[0], line[1:]...) // #nosec G204 -- one of three programs, and our own address
	if err := opener.Start(); err != nil {
		return fmt.Errorf("found no browser (%s); open the address in one", strings.TrimPrefix(err.Error(), "exec: "))
	}
	return opener.Process.Release() //nolint:wrapcheck // which never fails
}
