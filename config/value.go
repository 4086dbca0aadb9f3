package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// field is one setting of Config, accessed by reflection.
type field struct {
	key, def, kind, doc string
	min, max            string
	secret, reload      bool
	usual               bool // most people change it
	value               reflect.Value
}

func (f *field) env() string { return envPrefix + strings.ToUpper(strings.ReplaceAll(f.key, ".", "_")) }

// fields lists the settings of c in order.
func (c *Config) fields() []*field { return fieldsOf(reflect.ValueOf(c).Elem()) }

func fieldsOf(v reflect.Value) []*field {
	var out []*field
	for i := range v.NumField() {
		t := v.Type().Field(i)
		switch {
		case !t.IsExported():
		case t.Tag.Get("key") != "":
			out = append(out, &field{
				key: t.Tag.Get("key"), def: t.Tag.Get("default"), kind: t.Tag.Get("kind"), doc: t.Tag.Get("doc"),
				min: t.Tag.Get("min"), max: t.Tag.Get("max"), secret: t.Tag.Get("secret") != "", reload: t.Tag.Get("reload") != "", usual: t.Tag.Get("usual") != "", value: v.Field(i),
			})
		default:
			out = append(out, fieldsOf(v.Field(i))...)
		}
	}
	return out
}

// set parses a value. The error names the allowed values and contains no secret.
func (f *field) set(s string) error {
	s = strings.TrimSpace(s)
	if f.secret && slices.Contains(strings.Split(s, ","), masked) {
		return fmt.Errorf("%s: %s stands for a secret where settings are shown; write the secret itself, or remove the setting", f.key, masked)
	}
	switch p := f.value.Addr().Interface().(type) {
	case *string:
		if b, err := strconv.ParseBool(s); err == nil && f.kind == "consent" {
			s = strconv.FormatBool(b)
		}
		*p = s
		return f.checkText(s)
	case *bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return f.wrong(s, "is neither true nor false", "write true or false")
		}
		*p = b
	case *int:
		return f.setInt(p, s)
	case *float64:
		v, err := parseFloat(s)
		if err != nil || v != v {
			return f.wrong(s, "is not a number", "write e.g. "+f.def)
		}
		lo, _ := parseFloat(f.min)
		if hi, _ := parseFloat(f.max); v < lo || v > hi {
			return f.outside(s)
		}
		*p = v
	case *time.Duration:
		d, err := parseDuration(s)
		if err != nil {
			return f.wrong(s, "is not a duration", "write e.g. "+f.def)
		}
		lo, _ := parseDuration(f.min)
		hi, _ := parseDuration(f.max)
		if d < lo || hi > 0 && d > hi {
			return f.outside(s)
		}
		*p = d
	case *[]string:
		*p = nil
		if inner, ok := strings.CutPrefix(s, "["); ok { // as in the file
			s = strings.TrimSuffix(inner, "]")
		}
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*p = append(*p, item)
			}
		}
		return f.checkList(*p)
	case *map[string]string:
		if strings.HasPrefix(s, "{") { // as in the file
			var doc yaml.Node
			err := yaml.Unmarshal([]byte(s), &doc)
			if err == nil {
				s, err = f.scalar(doc.Content[0])
			}
			if err != nil {
				return f.wrong(s, "is no map", "write {name: value, …} or name=value,…")
			}
		}
		return setPairs(p, s, map[string]func(name, value string) error{"name=age": f.checkAge, "name=limit": f.checkLimit, "name=url": f.checkName}[f.kind])
	}
	return nil
}

// upstreamName matches the allowed names of upstreams, which occur in paths and metrics.
var upstreamName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// maxNames limits the named upstreams.
const maxNames = 64

func (f *field) checkName(name, base string) error {
	one := field{key: f.key + "." + name, kind: "url"}
	switch all := f.value.Interface().(map[string]string); {
	case !upstreamName.MatchString(name):
		return f.wrong(name, "is not a name", "write up to 32 small letters, digits, - and _, as in ollama: http://127.0.0.1:11434")
	case name == "openai" || name == "anthropic" || name == "gemini":
		return f.wrong(name, "is a provider with its own setting", "set upstream."+name+", or choose another name")
	case all[name] != "":
		return f.wrong(name, "is given twice", "keep one")
	case base == "":
		return f.wrong(name, "has no address", "write e.g. "+name+": http://127.0.0.1:11434")
	case len(all) == maxNames:
		return fmt.Errorf("%s: at most %d names are allowed", f.key, maxNames)
	}
	return one.checkText(base)
}

// setPairs parses name=value pairs, separated by commas, and checks each.
func setPairs(p *map[string]string, s string, check func(name, value string) error) error {
	*p = make(map[string]string)
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		if err := check(name, value); err != nil {
			return err
		}
		(*p)[name] = value
	}
	return nil
}

func (f *field) checkAge(key, age string) error {
	switch d, err := parseDuration(age); {
	case !strings.Contains(key, ":") && key != "messages" && key != "facts" && key != "work":
		return f.wrong(key, "is neither a kind nor the key of a project or a person", "write messages, facts or work, or e.g. user:mira or github_repo:github.com/acme/app")
	case age == "hold" && !strings.Contains(key, ":"):
		return f.wrong(age, "is no age of a kind", "write e.g. 30d, and hold for a project or a person")
	case age != "hold" && (err != nil || d <= 0):
		return f.wrong(age, "is not an age", "write e.g. 30d, or hold")
	}
	return nil
}

func (f *field) checkLimit(name, limit string) error {
	switch n, err := parseSize(limit); {
	case name != "messages" && name != "bytes" && (name != "disk" || f.key != "quota.all") && (name != "tokens" || f.key == "quota.all"):
		return f.wrong(name, "is no limit", "write messages or bytes, tokens of a person or tenant, or disk in quota.all")
	case err != nil || n <= 0:
		return f.wrong(limit, "is not a number or a size", "write e.g. "+name+": 20000, or 50MiB")
	}
	return nil
}

func (f *field) setInt(p *int, s string) error {
	parse, what, example := strconv.Atoi, "is not a whole number", f.def
	if f.kind == "size" {
		parse, what = parseSize, "is not a size"
		if example == "0" {
			example = "64MiB"
		}
	}
	n, err := parse(s)
	if err != nil {
		return f.wrong(s, what, "write e.g. "+example)
	}
	lo, _ := parse(f.min)
	hi, err := parse(f.max)
	if n < lo || err == nil && n > hi {
		return f.outside(s)
	}
	*p = n
	return nil
}

func (f *field) checkText(s string) error {
	choices, isChoice := strings.CutPrefix(f.kind, "one of ")
	switch {
	case s == "":
	case isChoice:
		if !slices.Contains(strings.Split(choices, ", "), s) {
			return f.wrong(s, "is not known", "write "+orList(choices))
		}
	case f.kind == "consent" && !strings.Contains(s, "://"):
		if s != "true" && s != "false" {
			return f.wrong(s, "is neither true nor false nor an address", "write true, false or the endpoint's address")
		}
	case f.kind == "url", f.kind == "consent":
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return f.wrong(redact(s), "is not an address that can be used", "write http://host[:port][/path] or https://…, without a user, a query or a fragment")
		}
	case f.kind == "address|off" && s == "off":
	case strings.HasPrefix(f.kind, "address"):
		if _, port, err := net.SplitHostPort(s); err != nil || !isPort(port) {
			return f.wrong(s, "is not an address to listen on", "write host:port, e.g. "+f.def)
		}
	}
	return nil
}

func (f *field) checkList(items []string) error {
	choices, ok := strings.CutPrefix(f.kind, "auto, or some of ")
	if !ok {
		return nil
	}
	for _, it := range items {
		if it == "auto" && len(items) == 1 {
			continue
		}
		if !slices.Contains(strings.Split(choices, ", "), it) {
			return f.wrong(it, "is not known here", "write "+f.kind)
		}
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n < 1<<16
}

func orList(choices string) string {
	if i := strings.LastIndex(choices, ", "); i >= 0 {
		return choices[:i] + " or " + choices[i+2:]
	}
	return choices
}

// wrong returns an error about a value: the problem and the remedy.
func (f *field) wrong(s, what, remedy string) error {
	if f.secret {
		s = masked
	}
	return fmt.Errorf("%s: %q %s; %s", f.key, s, what, remedy)
}

func (f *field) outside(s string) error {
	limits := "of at least " + f.min
	if f.max != "" {
		limits = "between " + f.min + " and " + f.max
	}
	return f.wrong(s, "is out of range", "write a value "+limits)
}

func redact(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return s
}

// parseFloat parses a number, or a percentage.
func parseFloat(s string) (float64, error) {
	number, isPercentage := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if isPercentage {
		v /= 100
	}
	return v, err
}

// parseDuration parses a Go duration, or days.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

var units = []struct {
	name  string
	bytes int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// parseSize parses a number of bytes with an optional unit.
func parseSize(s string) (int, error) {
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
			return int(n) * u.bytes, err // #nosec G115 -- 32 bits fit
		}
	}
	return 0, strconv.ErrSyntax
}

// text returns the value in a form that set accepts.
func (f *field) text() string {
	switch v := f.value.Interface().(type) {
	case time.Duration:
		if v > 0 && v%(24*time.Hour) == 0 {
			return strconv.Itoa(int(v/(24*time.Hour))) + "d"
		}
		s := v.String()
		if strings.HasSuffix(s, "m0s") {
			s = s[:len(s)-2]
		}
		if strings.HasSuffix(s, "h0m") {
			s = s[:len(s)-2]
		}
		return s
	case int:
		if f.kind == "size" {
			for _, u := range []int{2, 1, 0} {
				if v >= units[u].bytes && v%units[u].bytes == 0 {
					return strconv.Itoa(v/units[u].bytes) + units[u].name
				}
			}
		}
		return strconv.Itoa(v)
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var items []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			items = append(items, name+"="+v[name])
		}
		return strings.Join(items, ",")
	}
	return fmt.Sprint(f.value.Interface())
}

// plain returns the value with its type in a file.
func (f *field) plain() any {
	switch v := f.value.Interface().(type) {
	case bool, float64:
		return v
	case int:
		if f.kind != "size" || v == 0 {
			return v
		}
	case []string:
		return append([]string{}, v...)
	case map[string]string:
		return v
	}
	return f.text()
}
