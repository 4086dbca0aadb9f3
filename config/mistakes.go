package config

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// placed prefixes a mistake with the place of the first setting in its text that is not a
// default. ok is false if that setting's value was rejected already, because the mistake
// only follows from that.
func (l *loader) placed(err error) (placed error, ok bool) {
	text := err.Error()
	where := ""
	for _, key := range settingName.FindAllString(text, -1) {
		if of, _, below := strings.Cut(key, "."); below && l.fields[key] == nil && l.fields[of] != nil {
			key = of // an entry of a setting with several
		}
		switch origin := l.c.origins[key]; {
		case l.refused[key]:
			return nil, false
		case l.fields[key] == nil, origin == "default", where != "":
		case origin == "flag":
			where = "flag: "
		case origin != "":
			where = origin + ": "
		}
	}
	return fmt.Errorf("%s%w", where, err), true
}

var settingName = regexp.MustCompile(`[a-z_]+(\.[a-z_]+)*`)

// yamlMistake returns the place of a YAML syntax error, and the remedy.
func yamlMistake(name string, b []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlLine.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%s: %s", name, text)
	}
	line, what := m[1], m[2]
	for i, l := range strings.Split(string(b), "\n") {
		if indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]; strings.Contains(indent, "\t") {
			line, what = fmt.Sprint(i+1), "tabs are not allowed; indent with spaces"
			break
		}
	}
	return fmt.Errorf("%s:%s: %s", name, line, what)
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// unknown returns a message about an unknown name, with the most similar known one.
func unknown(name string, all iter.Seq[string]) string {
	names := slices.Sorted(all)
	if _, last, ok := strings.Cut(name, "."); ok { // a name without its group
		if slices.Contains(names, last) {
			return fmt.Sprintf("%s is not a setting; did you mean %s?", name, last)
		}
	}
	var near []string
	for _, n := range names {
		// Names of groups are candidates too.
		for at := 0; at >= 0; {
			group := n
			if i := strings.IndexByte(n[at:], '.'); i >= 0 {
				group, at = n[:at+i], at+i+1
			} else {
				at = -1
			}
			if group == name {
				return fmt.Sprintf("%s is a group of settings; write e.g. %s", name, n)
			}
			if group == n || strings.Count(group, ".") == strings.Count(name, ".") {
				near = append(near, group)
			}
		}
	}
	if best := nearest(name, near); best != "" {
		return fmt.Sprintf("%s is not a setting; did you mean %s?", name, best)
	}
	return name + " is not a setting; graphiti-proxy config print lists them all"
}

// nearest returns the most similar name, or "" if none is close. The prefix of environment
// variables does not make two names similar.
func nearest(name string, names []string) string {
	best, distance := "", len(strings.TrimPrefix(name, envPrefix))/2+1
	for _, n := range names {
		if d := edits(name, n); d < distance {
			best, distance = n, d
		}
	}
	return best
}

// edits returns the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
