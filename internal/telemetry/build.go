package telemetry

import (
	"fmt"
	"os"
	"runtime/debug"
)

// Version returns the module's version, or the commit that was built.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = "devel+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

// ProcessName returns a name of this process, for people.
func ProcessName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "a replica"
	}
	return fmt.Sprintf("%s/%d", name, os.Getpid())
}
