package main

import (
	"fmt"
	"regexp"
)

// version is one version in the notations of the package formats.
type version struct {
	semver string // of archives, npm, Homebrew, Scoop and winget
	python string // PEP 440
	linux  string // of deb, rpm and apk; sorts before the version that follows it
}

// written matches the versions that Go gives to a binary: of a tag, of a release candidate,
// and of a commit after either.
var written = regexp.MustCompile(`^v((\d+\.\d+\.\d+)(?:-rc\.(\d+))?(?:[-.](?:0\.)?(\d{14})-[0-9a-f]{12})?)(?:\+dirty)?$`)

func parseVersion(text string) (version, error) {
	m := written.FindStringSubmatch(text)
	if m == nil {
		return version{}, fmt.Errorf("version %q is neither v1.2.3 nor v1.2.3-rc.1 in form; tag the commit with one of them", text)
	}
	v := version{semver: m[1], python: m[2], linux: m[2]}
	if rc := m[3]; rc != "" {
		v.python += "rc" + rc
		v.linux += "-rc" + rc
	}
	if at := m[4]; at != "" {
		v.python += ".dev" + at
		v.linux = m[2] + "-pre" + at
	}
	return v, nil
}
