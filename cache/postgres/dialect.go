package postgres

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// schemaName is the schema of all tables: people use one database for several programs.
const schemaName = "graphiti_proxy"

// dialect translates statements of SQLite. Statements that need more than it has are written
// in a form that both databases take.
type dialect struct {
	tables *regexp.Regexp // a table after a keyword
	done   sync.Map       // translations, by statement
}

var created = regexp.MustCompile(`CREATE TABLE (\w+)`)

// dialectOf returns the dialect for the tables of a schema.
func dialectOf(steps []string) *dialect {
	names := []string{"version", "changes", "replicas", "lease"}
	for _, s := range steps {
		for _, m := range created.FindAllStringSubmatch(s, -1) {
			names = append(names, m[1])
		}
	}
	return &dialect{tables: regexp.MustCompile(`\b(FROM|JOIN|INTO|UPDATE) (` + strings.Join(names, "|") + `)\b`)}
}

// translate returns a statement for Postgres.
func (d *dialect) translate(query string) string {
	if q, ok := d.done.Load(query); ok {
		return q.(string) //nolint:forcetypeassert // the map's only type
	}
	q := numbered(query)
	for _, r := range replaced {
		q = r.from.ReplaceAllString(q, r.to)
	}
	q = d.tables.ReplaceAllString(q, "$1 "+schemaName+".$2")
	d.done.Store(query, q)
	return q
}

var replaced = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`json_each\((\$\d+)\) j CROSS JOIN`), "jsonb_array_elements_text($1::jsonb) WITH ORDINALITY AS j(value, key) JOIN"},
	{regexp.MustCompile(`json_each\((\$\d+)\) j\b`), "jsonb_array_elements_text($1::jsonb) WITH ORDINALITY AS j(value, key)"},
	{regexp.MustCompile(`json_each\((\$\d+)\)`), "jsonb_array_elements_text($1::jsonb)"},
	{regexp.MustCompile(`\bgroup_concat\(`), "string_agg("},
	{regexp.MustCompile(`\bjson_group_array\(`), "json_agg("},
	{regexp.MustCompile(`\binstr\(`), "strpos("},
	{regexp.MustCompile(`\bchar\((\d+)\)`), "chr($1)"},
	{regexp.MustCompile(`(\w+) = (\$\d+) COLLATE NOCASE`), "lower($1) = lower($2)"},
	{regexp.MustCompile(`LIMIT -1 OFFSET`), "LIMIT ALL OFFSET"},
	{regexp.MustCompile(`\(SELECT max\(\w+\) \+ 1 FROM \w+\)`), "DEFAULT"}, // the next number of a table
}

// numbered replaces the parameters ? and ?3 by $1 and $3, outside of strings.
func numbered(query string) string {
	var b strings.Builder
	most, quoted := 0, false
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case c == '\'':
			quoted = !quoted
			b.WriteByte(c)
		case c != '?' || quoted:
			b.WriteByte(c)
		default:
			end := i + 1
			for end < len(query) && query[end] >= '0' && query[end] <= '9' {
				end++
			}
			n, err := strconv.Atoi(query[i+1 : end])
			if err != nil {
				n = most + 1
			}
			most = max(most, n)
			b.WriteString("$" + strconv.Itoa(n))
			i = end - 1
		}
	}
	return b.String()
}

// storable replaces zero bytes and invalid UTF-8, which Postgres rejects in a text.
func storable(args []any) []any {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			if fixed := storableText(v); fixed != v {
				args = slices.Clone(args)
				args[i] = fixed
			}
		case []string:
			for j := range v {
				v[j] = storableText(v[j])
			}
		}
	}
	return args
}

func storableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
