package memo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// recorded returns the bodies of the requests in the dialects' fixtures, and of the
// recorded requests that clients send on their own.
func recorded(t testing.TB) (bodies [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../../internal/dialect/*/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no fixtures", err)
	}
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range a.Files {
			body := bytes.TrimSpace(bytes.Replace(section.Data, []byte("«»"), nil, 1))
			if json.Valid(body) && body[0] == '{' {
				bodies = append(bodies, body)
			}
		}
	}
	raw, err := os.ReadFile("../../internal/dialect/testdata/chores.json")
	if err != nil {
		t.Fatal(err)
	}
	var chores []struct{ Body json.RawMessage }
	if err := json.Unmarshal(raw, &chores); err != nil {
		t.Fatal(err)
	}
	for _, ch := range chores {
		bodies = append(bodies, ch.Body)
	}
	return bodies
}

// lists maps each dialect to the member that holds its messages.
var lists = map[string]string{"chat": "messages", "messages": "messages", "responses": "input", "gemini": "contents"}

// material returns a dialect's recorded messages and the other members of their bodies.
func material(t testing.TB, d dialect.Dialect) (items, members []string) {
	t.Helper()
	list := lists[d.Info().Name]
	for _, body := range recorded(t) {
		var c dialect.Conversation
		if !gjson.GetBytes(body, list).IsArray() || !d.Parse(body, &c) {
			continue
		}
		gjson.ParseBytes(body).ForEach(func(name, v gjson.Result) bool {
			if name.Str != list {
				members = append(members, name.Raw+":"+v.Raw)
				return true
			}
			v.ForEach(func(_, item gjson.Result) bool {
				items = append(items, item.Raw)
				return true
			})
			return true
		})
	}
	if len(items) < 10 {
		t.Fatalf("%s has %d recorded messages", d.Info().Name, len(items))
	}
	return items, members
}

// small returns a memo that remembers short bodies too.
func small() *Memo {
	m := New(1 << 20)
	m.piece = 16
	return m
}

var (
	root = dialect.Root("tenant", "person")
)

// said renders every property of a parsed conversation as text, for comparison.
func said(c *dialect.Conversation, understood bool, known dialect.Prompts) string {
	if !understood {
		return fmt.Sprint("not understood ", c.Stopped())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s tools %v last %d newest %d kind %d answered %v held %v\n", c.Model, c.Tools, c.Last, c.Newest, c.Kind, c.Answered(), c.HeldElsewhere())
	for f := dialect.FieldUser; f <= dialect.FieldPreviousResponseID; f++ {
		fmt.Fprintf(&b, "field %d: %s\n", f, c.Field(f))
	}
	c.References(func(id []byte) { fmt.Fprintf(&b, "reference %s\n", id) })
	fmt.Fprintf(&b, "%+v began %+v\n", c.Place("", known), c.Began())
	chain := c.Chain(root, nil)
	for i := range c.Messages {
		m := &c.Messages[i]
		answer, ended := c.AnswerTo(i)
		fmt.Fprintf(&b, "%d person %v system %v results %v at %d form %q insertable %v chain %x: %q, answered %q, ended %v\n",
			m.Role, m.Person, m.System, m.Results, m.At, m.Form, c.Insertable(i), chain[i], c.Text(i), answer, ended)
	}
	fmt.Fprintf(&b, "as Codex %+v %x\n", c.Place(dialect.Codex, known), c.Chain(dialect.Root("other", "person"), nil))
	return b.String()
}

// read parses a body through a memo, as the proxy parses a request, and returns the
// rendered conversation.
func read(m *Memo, d dialect.Dialect, credentials string, body []byte) string {
	var c dialect.Conversation
	var r Reading
	if !m.Worth(len(body)) {
		return said(&c, d.Parse(body, &c), nil)
	}
	ok := m.Parse(d, []byte(credentials), body, &c, &r)
	if ok {
		c.Place("", &r)
		m.Keep(&c, root, c.Chain(root, nil), &r)
	}
	return said(&c, ok, &r)
}

// plain parses a body without a memo and returns the rendered conversation.
func plain(d dialect.Dialect, body []byte) string {
	var c dialect.Conversation
	return said(&c, d.Parse(body, &c), nil)
}

func same(t interface {
	Helper()
	Fatalf(string, ...any)
}, m *Memo, d dialect.Dialect, body []byte) {
	t.Helper()
	if diff := cmp.Diff(plain(d, body), read(m, d, "sk-1", body)); diff != "" {
		t.Fatalf("%s: read from a checkpoint it says something else (-want +got):\n%s\n%s", d.Info().Name, diff, body)
	}
}

// TestRecordedRequests checks that every recorded request parses to the same conversation
// from a checkpoint as from the beginning, in every dialect.
func TestRecordedRequests(t *testing.T) {
	m := small()
	for _, body := range recorded(t) {
		for _, d := range registry.All {
			same(t, m, d, body)
			same(t, m, d, body) // now from a checkpoint
		}
	}
	if m.hits.Load() == 0 {
		t.Error("nothing was read from a checkpoint")
	}
}

// TestConversationsGrow checks the same for conversations of recorded messages in random
// order that grow turn by turn, with other members before and after the messages, some of
// them repeated; and for bodies with a replaced message, a changed byte or an early end.
func TestConversationsGrow(t *testing.T) {
	for _, d := range registry.All {
		t.Run(d.Info().Name, func(t *testing.T) {
			items, members := material(t, d)
			var hits int64
			rapid.Check(t, func(t *rapid.T) {
				m := small()
				said := rapid.SliceOfN(rapid.SampledFrom(items), 2, 12).Draw(t, "messages")
				before := rapid.SliceOfN(rapid.SampledFrom(members), 0, 4).Draw(t, "before")
				after := rapid.SliceOfN(rapid.SampledFrom(members), 0, 3).Draw(t, "after")
				space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
				body := func(said []string) []byte {
					list := `"` + lists[d.Info().Name] + `":` + space + "[" + strings.Join(said, space+","+space) + "]"
					all := slices.Concat(before, []string{list}, after)
					return []byte("{" + strings.Join(all, ","+space) + "}")
				}
				for n := rapid.IntRange(1, len(said)).Draw(t, "first"); n <= len(said); n += rapid.IntRange(1, 2).Draw(t, "more") {
					same(t, m, d, body(said[:n]))
				}
				whole := body(said)
				same(t, m, d, whole)
				other := slices.Clone(said)
				other[rapid.IntRange(0, len(other)-1).Draw(t, "another")] = rapid.SampledFrom(items).Draw(t, "message")
				same(t, m, d, body(other))
				same(t, m, d, body(said[:rapid.IntRange(0, len(said)).Draw(t, "cut")]))
				changed := slices.Clone(whole)
				changed[rapid.IntRange(0, len(changed)-1).Draw(t, "changed")] = rapid.SampledFrom([]byte(`x"\,{}[]: 1`)).Draw(t, "byte")
				same(t, m, d, changed)
				same(t, m, d, whole[:rapid.IntRange(0, len(whole)).Draw(t, "broken off")])
				hits += m.hits.Load()
			})
			if hits == 0 {
				t.Error("nothing was read from a checkpoint")
			}
		})
	}
}

// FuzzSharedBeginning checks that a body that shares only its beginning with a known body
// parses as it does without a memo.
func FuzzSharedBeginning(f *testing.F) {
	for _, body := range recorded(f) {
		f.Add(body, len(body)/2, []byte(`"}]}`))
		f.Add(body, len(body)-1, []byte(`,"messages":[]}`))
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}],"model":"m","tools":[{}]}`), 70, []byte(`,"role":"user"}],"model":"m"}`))
	f.Fuzz(func(t *testing.T, body []byte, at int, rest []byte) {
		other := append(slices.Clone(body[:min(max(at, 0), len(body))]), rest...)
		for _, d := range registry.All {
			m := small()
			same(t, m, d, body)
			same(t, m, d, other)
			same(t, m, d, body)
		}
	})
}

// long returns a conversation with the given number of exchanges.
func long(exchanges int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"be kind"}`)
	for i := range exchanges {
		fmt.Fprintf(&b, `,{"role":"user","content":"question %d %s"},{"role":"assistant","content":"answer"}`, i, strings.Repeat("word ", 100))
	}
	b.WriteString(`,{"role":"user","content":"and now?"}]}`)
	return b.Bytes()
}

func TestOtherCredentialsKnowNothing(t *testing.T) {
	m, d := New(1<<20), registry.All[0]
	body := long(40)
	for _, step := range []struct {
		credentials string
		hits        int64
	}{{"sk-1", 0}, {"sk-1", 1}, {"sk-2", 1}, {"", 1}, {"sk-1", 2}} {
		read(m, d, step.credentials, body)
		if got := m.hits.Load(); got != step.hits {
			t.Errorf("after %q: %d hits, want %d", step.credentials, got, step.hits)
		}
	}
	if d := registry.All[2]; read(m, d, "sk-1", body) != plain(d, body) || m.hits.Load() != 2 {
		t.Error("another dialect has read from the checkpoint")
	}
}

// TestMemoryIsBounded checks that the memo counts its memory and drops old conversations to
// stay within its limit.
func TestMemoryIsBounded(t *testing.T) {
	m, d := New(128<<10), registry.All[0]
	for i := range 200 {
		read(m, d, fmt.Sprint("sk-", i), long(40))
		if n := m.Bytes(); n > m.max {
			t.Fatalf("%d bytes are taken of %d", n, m.max)
		}
	}
	sum := 0
	for _, all := range m.entries {
		for _, e := range all.Values() {
			sum += e.bytes
		}
	}
	if n := m.entries[bodies].Len(); sum != m.Bytes() || n < 2 {
		t.Errorf("%d conversations; all that is known takes %d bytes, and %d are counted", n, sum, m.Bytes())
	}
	read(m, d, "sk-199", long(40))
	if m.hits.Load() != 1 {
		t.Error("the newest conversation is not known")
	}
}

// TestLongerReplaces checks that the memo stores one beginning of a growing conversation,
// and does not copy it again for every small addition.
func TestLongerReplaces(t *testing.T) {
	m, d := New(1<<20), registry.All[0]
	for n := 40; n <= 160; n++ {
		read(m, d, "sk", long(n))
	}
	all := m.entries[bodies]
	if m.hits.Load() != 120 || m.misses.Load() != 1 || all.Len() != 1 {
		t.Errorf("%d hits, %d misses, %d entries", m.hits.Load(), m.misses.Load(), all.Len())
	}
	e := all.Values()[0].value.(*known) //nolint:forcetypeassert // Keep stores this type
	if got, want := e.at.End(), len(long(130)); got < want {
		t.Errorf("the first %d bytes are known, of %d", got, len(long(160)))
	}
}

// TestLimitsCount checks that the limits also apply to a body that is read from a
// checkpoint.
func TestLimitsCount(t *testing.T) {
	m, d := New(1<<20), registry.All[0]
	body := long(40)
	read(m, d, "sk", body)
	for _, tc := range []struct {
		name   string
		limits dialect.Limits
		want   dialect.Stop
	}{
		{"messages", dialect.Limits{Messages: 50}, dialect.StoppedTooLarge},
		{"memory", dialect.Limits{Room: roomForLittle{}}, dialect.StoppedBusy},
	} {
		var c dialect.Conversation
		c.Limit(tc.limits)
		if m.Parse(d, []byte("sk"), body, &c, new(Reading)) || c.Stopped() != tc.want {
			t.Errorf("%s: stopped %v", tc.name, c.Stopped())
		}
	}
}

// TestSharesAreKept checks that an owner with many entries displaces no entries of another
// kind within that kind's share, that a kind may use the idle share of another one until
// Rest, and that the memo refuses an entry larger than a quarter of its kind's share.
func TestSharesAreKept(t *testing.T) {
	m := New(1 << 20)
	put := func(k Space, owner byte, name, bytes int) {
		m.Update(Key{k, Owner{owner}, uint64(name)}, func(any) (any, int) { return name, bytes }) // #nosec G115 -- a count
	}
	held := func(k Space, owner byte) (n int) {
		for name := range 100 {
			if v, ok := m.Get(Key{k, Owner{owner}, uint64(name)}).(int); ok && v == name { // #nosec G115 -- a count
				n++
			}
		}
		return n
	}
	for n := range 100 {
		put(Sessions, 'a', n, 1000)
	}
	for n := range 10_000 {
		put(Turns, 'h', n, 5000)
		put(bodies, 'h', n, 50_000)
		put(prompts, 'h', n, 3000)
		if m.Bytes() > m.max {
			t.Fatalf("%d bytes are taken of %d", m.Bytes(), m.max)
		}
	}
	if n := held(Sessions, 'a'); n != 100 {
		t.Errorf("of 100 sessions %d are known after others filled the rest", n)
	}
	if m.bytes[bodies] <= m.share(bodies) && m.bytes[Turns] <= m.share(Turns) {
		t.Error("what nobody takes is not used")
	}
	before := m.Bytes()
	put(Sessions, 'h', 0, m.share(Sessions)/4)
	if v := m.Get(Key{Sessions, Owner{'h'}, 0}); v != nil || m.Bytes() != before {
		t.Errorf("%v is remembered, which leaves little room", v)
	}
	if v := m.Get(Key{Sessions, Owner{'b'}, 1}); v != nil {
		t.Errorf("another owner gets %v", v)
	}
	m.Rest()
	for k := range kinds {
		if m.bytes[k] > m.share(k) {
			t.Errorf("at rest, kind %d has %d bytes, want at most its share of %d", k, m.bytes[k], m.share(k))
		}
	}
	if v := m.Get(Key{Turns, Owner{'h'}, 9999}); v != 9999 || held(Sessions, 'a') != 100 {
		t.Errorf("at rest, the newest turn is %v and %d sessions are known, want 9999 and 100", v, held(Sessions, 'a'))
	}
}

func BenchmarkParse(b *testing.B) {
	d := registry.All[0]
	for _, size := range []int{16, 64, 512} {
		body := long(size << 10 / 590)
		b.Run(fmt.Sprintf("known/%dKiB", size), func(b *testing.B) {
			m := New(4 << 20)
			read(m, d, "sk", body)
			var c dialect.Conversation
			var r Reading
			var chain []dialect.Fingerprint
			b.ReportAllocs()
			for b.Loop() {
				if !m.Parse(d, []byte("sk"), body, &c, &r) || r.from == nil {
					b.Fatal("not known")
				}
				chain = c.Chain(root, chain[:0])
			}
		})
		b.Run(fmt.Sprintf("first/%dKiB", size), func(b *testing.B) {
			var c dialect.Conversation
			var r Reading
			var chain []dialect.Fingerprint
			b.ReportAllocs()
			for b.Loop() {
				m := New(4 << 20)
				if !m.Parse(d, []byte("sk"), body, &c, &r) {
					b.Fatal("not understood")
				}
				chain = c.Chain(root, chain[:0])
				m.Keep(&c, root, chain, &r)
			}
		})
	}
}

// roomForLittle grants fewer than 1000 bytes at a time.
type roomForLittle struct{}

func (roomForLittle) Grow(bytes int) bool { return bytes < 1000 }

// TestNothingTakesNoRoom checks that a session without a value has no entry.
func TestNothingTakesNoRoom(t *testing.T) {
	m, k := New(1<<20), Key{Kind: Sessions, Name: 1}
	for _, value := range []any{"a", nil} {
		m.Update(k, func(any) (any, int) { return value, 100 })
		if got := m.Get(k); got != value {
			t.Errorf("got %v, want %v", got, value)
		}
	}
	if n := m.entries[Sessions].Len(); n != 0 || m.Bytes() != 0 {
		t.Errorf("%d entries of %d bytes for no value, want none", n, m.Bytes())
	}
}
