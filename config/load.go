package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	envPrefix = "GRAPHITI_PROXY_"

	// graphitiURL is the variable that other Graphiti clients use. It sets
	// memory.endpoint and, alone, selects the backend.
	graphitiURL = "GRAPHITI_URL"

	maxFile = 1 << 20
)

// Sources are the sources of settings, strongest first.
type Sources struct {
	Flags map[string]string // by key
	Env   []string          // as os.Environ
	File  string            // must exist; "" means UsualFile, if that exists
}

// UsualFile returns the default configuration file, or "" without a home directory. A
// file in the current directory is never read: another person may own it, and it decides
// the destination of requests and their keys.
func UsualFile(env []string) string {
	l := &loader{env: make(map[string]string)}
	l.environment(env)
	if d := l.under("XDG_CONFIG_HOME", ".config"); d != "" {
		return filepath.Join(d, "graphiti-proxy", "config.yaml")
	}
	return ""
}

// Errors lists all mistakes of a configuration, one line each.
type Errors []error

func (e Errors) Error() string { return errors.Join(e...).Error() }

// remoteTimeout is the default of recall.timeout for a remote memory: a search over REST
// takes 150 to 500 ms, and the embedding of the question as long again.
const remoteTimeout = 800 * time.Millisecond

// Load reads the settings. Its error is of type Errors and contains every mistake.
func Load(s Sources) (*Config, error) {
	c := &Config{origins: make(map[string]string)}
	l := &loader{c: c, fields: make(map[string]*field), env: make(map[string]string), refused: make(map[string]bool)}
	for _, f := range c.fields() {
		l.fields[f.key] = f
		l.give(f.def, "default", "", f)
	}
	l.environment(s.Env)
	l.source(func() { l.file(s) })
	l.source(func() { l.applyEnv(s.Env) })
	l.source(func() { l.flags(s.Flags) })
	if c.DataDir == "" {
		c.DataDir = l.dataDir()
	}
	l.placeFiles()
	if c.Memory.Endpoint != "" && c.origins["memory.backend"] == "default" {
		c.Memory.Backend, c.origins["memory.backend"] = "graphiti", "memory.endpoint"
	}
	if c.RemoteMemory() && c.Origin("recall.timeout") == "default" {
		c.Recall.Timeout = remoteTimeout
	}
	c.withoutVersions()
	c.check(func(err error) {
		if err, ok := l.placed(err); ok {
			l.fail(err)
		}
	})
	if len(l.errs) > 0 {
		return nil, l.errs
	}
	return c, nil
}

type loader struct {
	c      *Config
	fields map[string]*field
	env    map[string]string
	errs   Errors

	refused map[string]bool // keys with a rejected value
}

func (l *loader) fail(err error) { l.errs = append(l.errs, err) }

func (l *loader) flags(flags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		f, ok := l.fields[key]
		if !ok {
			l.fail(fmt.Errorf("flag --set: %s", unknown(key, maps.Keys(l.fields))))
			continue
		}
		l.give(flags[key], "flag", "flag: ", f)
	}
}

// source reads a source of settings. Its consent covers only its own addresses, not the
// addresses in other sources.
func (l *loader) source(read func()) {
	before := maps.Clone(l.c.origins)
	read()
	sets := func(key string) bool { return l.c.origins[key] != before[key] }
	if !sets("memory.consent") {
		return
	}
	c := l.c
	c.consentFor = consented{}
	if sets("memory.endpoint") {
		c.consentFor.memory = c.Memory.Endpoint
	}
	if sets("embedding.url") {
		c.consentFor.embedding = c.Embedding.URL
	}
	if sets("distil.url") {
		c.consentFor.distil = c.Distil.URL
	}
}

func (l *loader) give(value, origin, where string, f *field) {
	if err := f.set(value); err != nil && origin != "default" {
		l.fail(fmt.Errorf("%s%w", where, err))
		l.refused[f.key] = true
		return
	}
	l.c.origins[f.key] = origin
}

func (l *loader) environment(env []string) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		l.env[name] = value
	}
}

// applyEnv sets the values from the environment. An unknown name with the proxy's prefix
// is a mistake.
func (l *loader) applyEnv(env []string) {
	byEnv := make(map[string]*field)
	for _, f := range l.fields {
		byEnv[f.env()] = f
	}
	if v := l.env[graphitiURL]; v != "" {
		l.give(v, "environment "+graphitiURL, "environment "+graphitiURL+": ", l.fields["memory.endpoint"])
	}
	for _, e := range slices.Sorted(slices.Values(env)) {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		f, ok := byEnv[name]
		if secret := byEnv[strings.TrimSuffix(name, fileSuffix)]; !ok && secret != nil && secret.secret {
			l.secretFile(name, value, secret)
			continue
		}
		if !ok {
			l.fail(fmt.Errorf("environment: %s", unknown(name, maps.Keys(byEnv))))
			continue
		}
		l.give(value, "environment "+name, "environment "+name+": ", f)
	}
}

// fileSuffix ends the name of a variable that contains the path of a secret.
const fileSuffix = "_FILE"

// secretFile sets a secret to the content of a file, the form of Docker and Kubernetes
// secrets. Several secrets take one line each.
func (l *loader) secretFile(name, path string, f *field) {
	where := "environment " + name + ": "
	if _, twice := l.env[f.env()]; twice {
		l.fail(fmt.Errorf("%s%s is set as well; keep one", where, f.env()))
		return
	}
	l.c.secrets = append(l.c.secrets, path)
	b, err := readBounded(path)
	value := strings.TrimSpace(string(b))
	if _, list := f.value.Interface().([]string); list {
		value = strings.Join(strings.Fields(value), ",")
	}
	switch {
	case err != nil:
		l.fail(fmt.Errorf("%s%s: %w", where, f.key, err))
	case value == "":
		l.fail(fmt.Errorf("%s%s: %s is empty", where, f.key, path))
	default:
		l.give(value, "environment "+name, where, f)
	}
}

// file reads the configuration file, if it exists.
func (l *loader) file(s Sources) {
	path := s.File
	if path == "" {
		path = UsualFile(s.Env)
		if _, err := os.Stat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	b, err := readBounded(path)
	if err != nil {
		l.fail(fmt.Errorf("read configuration: %w", err))
		return
	}
	l.c.file = path
	l.yaml(path, b)
}

// placeFiles resolves relative paths in the configuration file against the file's
// directory, because another person may own the current directory.
func (l *loader) placeFiles() {
	c := l.c
	place := func(key string, path *string) {
		if c.file != "" && strings.HasPrefix(c.Origin(key), filepath.Base(c.file)+":") && *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(c.file), *path)
		}
	}
	for key, path := range map[string]*string{"data_dir": &c.DataDir, "identity.users_file": &c.Identity.UsersFile, "tls.cert": &c.TLS.Cert, "tls.key": &c.TLS.Key, "memory.client_certificate": &c.Memory.ClientCertificate} {
		place(key, path)
	}
	for i, h := range c.Memory.Headers {
		name, file, _ := strings.Cut(h, "=")
		place("memory.headers", &file)
		c.Memory.Headers[i] = name + "=" + file
	}
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- the operator's own choice
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(transform.NewReader(f, unicode.BOMOverride(transform.Nop)), maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return b, err
}

// under returns the directory in an environment variable, or else a folder of the home
// directory, or "" without either.
func (l *loader) under(variable string, folder ...string) string {
	if d := l.env[variable]; d != "" {
		return d
	}
	home := l.env["HOME"]
	if home == "" {
		home, _ = os.UserHomeDir() // "" if unknown
	}
	if home == "" {
		return ""
	}
	return filepath.Join(append([]string{home}, folder...)...)
}

func (l *loader) dataDir() string {
	d := l.under("XDG_DATA_HOME", ".local", "share")
	if d == "" {
		l.fail(errors.New("data_dir: no home directory to store the memory in; set HOME, or data_dir to a directory that only you can read (GRAPHITI_PROXY_DATA_DIR)"))
		return ""
	}
	return filepath.Join(d, "graphiti-proxy")
}
