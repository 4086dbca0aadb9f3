package main

import (
	"net/url"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

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
