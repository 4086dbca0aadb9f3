package graphiti

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Prefixes of the canonical keys of projects.
const (
	RepoPrefix = "github_repo:" // host/org/repo
	PathPrefix = "path:"        // an absolute path
)

// forges maps hosts that ignore case in repository names to the host in their keys.
var forges = map[string]string{
	"github.com": "github.com", "www.github.com": "github.com", "ssh.github.com": "github.com",
	"gitlab.com": "gitlab.com", "www.gitlab.com": "gitlab.com", "altssh.gitlab.com": "gitlab.com",
	"bitbucket.org": "bitbucket.org", "www.bitbucket.org": "bitbucket.org", "altssh.bitbucket.org": "bitbucket.org",
}

// WorkspaceKey returns the canonical key of a project. Repository addresses, in every form
// that git accepts, become github_repo:host/org/repo; other names are their own keys. Keys
// never contain the user and password of an address. ok is false for invalid names.
func WorkspaceKey(name string) (key string, ok bool) {
	if !validKey(name) || strings.HasPrefix(name, PathPrefix) {
		return name, validKey(name)
	}
	if repo, ok := strings.CutPrefix(name, RepoPrefix); ok {
		host, path, _ := strings.Cut(repo, "/")
		return repoKey(host, path)
	}
	scheme, rest, isURL := strings.Cut(name, "://")
	if isURL && isScheme.MatchString(scheme) {
		key, ok = withoutUser(scheme, rest)
		if !ok || !ofGit(scheme) {
			return key, ok
		}
		u, err := url.Parse(name)
		if err != nil {
			return "", false
		}
		return repoKey(u.Hostname(), u.Path)
	}
	if host, path, ok := scp(name); ok {
		return repoKey(host, path)
	}
	if isURL {
		return withoutUser(scheme, rest)
	}
	return name, true
}

// repoKey returns the key of a repository.
func repoKey(host, path string) (key string, ok bool) {
	host = strings.TrimRight(strings.ToLower(host[strings.LastIndexByte(host, '@')+1:]), ".")
	if forge, ok := forges[host]; ok {
		host, path = forge, strings.ToLower(path)
	}
	for before := ""; before != path; {
		before, path = path, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	}
	key = RepoPrefix + host + "/" + path
	return key, host != "" && path != "" && validKey(key)
}

// RepositoryName returns the repository's name in a project's key, without its host and
// owner, or "" if the key is not a repository's.
func RepositoryName(key string) string {
	repo, ok := strings.CutPrefix(key, RepoPrefix)
	if !ok {
		return ""
	}
	return repo[strings.LastIndexByte(repo, '/')+1:]
}

var isScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// ofGit reports whether git, or a tool for its repositories, uses this scheme.
func ofGit(scheme string) bool {
	switch strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(scheme), "git+"), "+git") {
	case "https", "http", "ssh", "git", "ftp", "ftps":
		return true
	}
	return false
}

// withoutUser removes user and password from an address that is not git's. ok is false if
// they may be elsewhere in it.
func withoutUser(scheme, rest string) (key string, ok bool) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	host := rest[at:end]
	if i := strings.IndexByte(host, ']'); strings.HasPrefix(host, "[") && i > 0 { // IPv6
		host = host[i:]
	}
	_, port, _ := strings.Cut(host, ":")
	if strings.Trim(port, "0123456789") != "" && strings.Contains(rest[end:], "@") {
		return "", false // user:pass/word@host
	}
	return scheme + "://" + rest[at:], true
}

// scp splits an address in scp form: [user[:password]@]host:path.
func scp(s string) (host, path string, ok bool) {
	for at := strings.LastIndexByte(s, '@'); at > 0; at = strings.LastIndexByte(s[:at], '@') {
		user, password, secret := strings.Cut(s[:at], ":")
		if user == "" || strings.Contains(user, "/") || strings.ContainsFunc(s[:at], unicode.IsSpace) {
			continue
		}
		if strings.Contains(user, "@") && strings.Contains(password, "/") {
			continue // git@host:dir/a@b:c
		}
		ends := ":"
		if secret {
			ends = ":/" // a URL whose scheme was left out
		}
		if i := strings.IndexAny(s[at+1:], ends); i > 0 {
			host, path = s[at+1:at+1+i], s[at+2+i:]
			if path != "" && !strings.ContainsAny(host, "/ ") {
				return host, path, true
			}
		}
	}
	// Names without a user may look alike: require a dot in the host, and several parts
	// or .git in the path.
	host, path, ok = strings.Cut(s, ":")
	ok = ok && isHost.MatchString(host) && (strings.Contains(strings.Trim(path, "/"), "/") || strings.HasSuffix(path, ".git"))
	return host, path, ok && !strings.ContainsFunc(s, unicode.IsSpace)
}

var isHost = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+\.?$`)

// ShortWorkspace returns the name of a project for people.
func ShortWorkspace(key string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(key, PathPrefix), RepoPrefix), "github.com/")
}
