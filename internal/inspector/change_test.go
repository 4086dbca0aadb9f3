package inspector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

var must = helptest.Must

// status returns a host's Status function. Its result is a zero Status after change.
func status(change func(*health.Status)) func(context.Context, bool) health.Status {
	return func(context.Context, bool) (st health.Status) {
		change(&st)
		return st
	}
}

// idOf returns the id of a message with a text, from the owner's memory or that of the
// project w.
func (s *site) idOf(t *testing.T, text string) string {
	t.Helper()
	for _, group := range []string{servicetest.OwnersGroup, "workspace_w"} {
		shown, err := service.Show.Run(t.Context(), s.Host, &service.ShowRequest{Selector: service.Selector{Group: group}, Last: 100})
		must(t, err)
		for _, m := range shown.Messages {
			if strings.Contains(m.Text, text) {
				return m.ID
			}
		}
	}
	t.Fatalf("nothing says %q", text)
	return ""
}

// texts returns the page of the owner's memory.
func (s *site) texts(t *testing.T) string {
	t.Helper()
	_, body := s.get(t, "/memory/show?group="+servicetest.OwnersGroup)
	return body
}

// changeID matches the id of a change in an address. redirects leaves it out.
var changeID = regexp.MustCompile("undo=[0-9a-f]{12}")

// redirects checks that a form led to a page, with a notice.
func redirects(t *testing.T, w *httptest.ResponseRecorder, want string) {
	t.Helper()
	if got := changeID.ReplaceAllString(w.Header().Get("Location"), "undo"); w.Code != http.StatusSeeOther || got != want {
		t.Errorf("%d to %q, want %q: %s", w.Code, got, want, w.Body)
	}
}

// TestMessagesAreForgottenCorrectedAndPinned checks that a message can be forgotten,
// corrected and pinned, that each operation is audited, and that its form returns to the
// page of the button.
func TestMessagesAreForgottenCorrectedAndPinned(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	m.Say(t, "", "s", "", "Our database is MySQL.")
	s := newSite(t, m)

	redirects(t, s.post(t, "/message/"+s.idOf(t, "Miso")+"/forget", "back", "/conversation/abc#t-1"), "/conversation/abc?done=forget#t-1")
	redirects(t, s.post(t, "/message/"+s.idOf(t, "MySQL")+"/correct", "text", " Our database is Postgres. ", "back", "https://example.com/"), "/memory?done=corrected&undo")
	m.Settle(t)
	if got := s.texts(t); strings.Contains(got, "Miso") || !regexp.MustCompile(`tag">ended.*MySQL`).MatchString(got) || !strings.Contains(got, "Our database is Postgres.") {
		t.Errorf("got %s", got)
	}

	redirects(t, s.post(t, "/message/"+s.idOf(t, "Postgres")+"/pin", "text", "Always use tabs.", "kind", "preference", "to", "user"), "/memory?done=pinned&undo")
	got := s.texts(t)
	if !strings.Contains(got, "The card") || !strings.Contains(got, "Always use tabs.") {
		t.Errorf("got %s", got)
	}
	for _, want := range []string{"forget messages", "correct", "promote", "show"} {
		if !slices.Contains(s.audit, want) {
			t.Errorf("%s is not audited: %v", want, s.audit)
		}
	}
}

// TestInvalidRequests checks that an invalid request gets a 4xx status and a page with the
// reason.
func TestInvalidRequests(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	s := newSite(t, m)
	id := s.idOf(t, "Miso")
	for name, tc := range map[string]struct {
		at     string
		fields []string
		status int
		want   string
	}{
		"no such message":       {"/message/0123/forget", nil, 400, "the person has no message with the id"},
		"an empty correction":   {"/message/" + id + "/correct", []string{"text", "  "}, 400, "empty"},
		"a credential":          {"/message/" + id + "/correct", []string{"text", "the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"}, 400, "credential"},
		"another kind":          {"/message/" + id + "/pin", []string{"text", "x", "kind", "nonsense"}, 400, "unknown kind"},
		"no dead letter":        {"/delivery/retry", nil, 400, "No row is selected."},
		"a number that is none": {"/delivery/drop", []string{"number", "x"}, 400, "cannot be read"},
		"another group":         {"/memory/export", []string{"group", "a b"}, 400, ""},
		"another method":        {"/conversations", nil, 404, "No page has this address"},
	} {
		w := s.post(t, tc.at, tc.fields...)
		if body := w.Body.String(); w.Code != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d, want %d, with %q: %s", name, w.Code, tc.status, tc.want, body)
		} else {
			s.wellFormed(t, tc.at, body)
		}
	}
}

// TestForgettingIsTyped checks that the forget page deletes only if the visitor has typed
// the name, and otherwise reports that it deleted nothing.
func TestForgettingIsTyped(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	m.Say(t, "", "s", "github_repo:github.com/acme/widgets", "We use Postgres.")
	s := newSite(t, m)
	project := ""
	list, err := m.Memory.Catalog(t.Context(), &service.ListRequest{Limit: 10})
	must(t, err)
	for _, k := range list.Memories {
		if k.Scope == "workspace" {
			project = k.Group
		}
	}
	if _, body := s.get(t, "/memory/forget?group="+project); !strings.Contains(body, `<b class="id">acme/widgets</b>`) {
		t.Errorf("got %s", body)
	}
	for _, typed := range []string{"", "acme", "ACME/widgets", "forget everything"} {
		if w := s.post(t, "/memory/forget", "group", project, "typed", typed); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Nothing was deleted") {
			t.Errorf("%q: %d %s", typed, w.Code, w.Body)
		}
	}
	if slices.Contains(s.audit, "forget") {
		t.Errorf("audited: %v", s.audit)
	}
	redirects(t, s.post(t, "/memory/forget", "group", project, "typed", " acme/widgets "), "/memory?done=forget")
	if _, body := s.get(t, "/memory"); strings.Contains(body, "acme/widgets") || !strings.Contains(body, "own memory") {
		t.Errorf("got %s", body)
	}
	receipt := s.post(t, "/memory/forget", "typed", "forget everything", "receipt", "1")
	var signed service.Receipt
	if err := json.NewDecoder(receipt.Body).Decode(&signed); err != nil || signed.Check(signed.Key) != nil || signed.Messages != 2 || !strings.HasPrefix(receipt.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("%+v, %v, %v", signed, err, receipt.Header())
	}
	if _, body := s.get(t, "/memory"); !strings.Contains(body, "No messages are stored yet") {
		t.Errorf("got %s", body)
	}
}

// TestForgetting_Undo checks that a memory and a message forgotten on their pages are back after Undo,
// that a copy can be deleted now, and that the texts before and after name the same remains.
func TestForgetting_Undo(t *testing.T) {
	const leaves = "Backups, exports, sent blocks, and the histories of clients and providers keep the texts."
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	m.Settle(t)
	s := newSite(t, m)
	has := func(at, want string, is bool) string {
		t.Helper()
		_, body := s.get(t, at)
		if strings.Contains(body, want) != is {
			t.Errorf("%s has %q: %v, want %v:\n%s", at, want, !is, is, body)
		}
		return body
	}
	undo := func(w *httptest.ResponseRecorder, want string) string {
		t.Helper()
		if got := changeID.ReplaceAllString(w.Header().Get("Location"), "undo"); w.Code != http.StatusSeeOther || got != want {
			t.Fatalf("%d, %s, want %s: %s", w.Code, got, want, w.Body)
		}
		at := w.Header().Get("Location")
		has(at, leaves, true)
		return regexp.MustCompile(`undo=([0-9a-f]+)`).FindStringSubmatch(at)[1]
	}
	has("/message/"+s.idOf(t, "Miso"), leaves, true)
	id := undo(s.post(t, "/message/"+s.idOf(t, "Miso")+"/remove", "back", "/memory"), "/memory?done=remove&undo")
	has("/search?q=Miso", "called Miso", false)
	redirects(t, s.post(t, "/changes/undo", "id", id), "/changes?done=line-undone")
	has("/memory/forget", leaves, true)
	id = undo(s.post(t, "/memory/forget", "do", "remove"), "/memory?done=remove&undo")
	has("/memory", "No messages are stored yet", true)
	has("/changes", "called Miso", true)
	redirects(t, s.post(t, "/changes/undo", "id", id), "/changes?done=line-undone")
	id = undo(s.post(t, "/search/change", "do", "remove", "message", s.idOf(t, "Miso")), "/search?done=remove&undo")
	redirects(t, s.post(t, "/changes/undo", "id", id, "do", "delete"), "/changes?done=copy-deleted")
	has("/changes?done=copy-deleted", leaves, true)
	has("/changes", "called Miso", false)
	if w := s.post(t, "/changes/undo", "id", id); w.Code != http.StatusBadRequest {
		t.Errorf("undo of a deleted copy: %d", w.Code)
	}
}

// send sends a file like the form of the page.
func (s *site) send(t *testing.T, text string) *httptest.ResponseRecorder {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "upload")
	if err == nil {
		_, err = file.Write([]byte(text))
	}
	if err != nil || form.Close() != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/memory/import", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return s.serve(r)
}

// leaving is a request body that cancels the request once it has been read.
type leaving struct {
	*bytes.Buffer
	leave context.CancelFunc
}

// Read implements io.Reader.
func (l leaving) Read(p []byte) (int, error) {
	n, err := l.Buffer.Read(p)
	if l.Len() == 0 {
		l.leave()
	}
	return n, err //nolint:wrapcheck // an io.Reader's
}

// TestImport_BrowserLeft checks that an import continues after the browser has sent the
// file and left.
func TestImport_BrowserLeft(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
	file, err := form.CreateFormFile("file", "upload")
	if err == nil {
		_, err = file.Write([]byte(`{"role":"user","content":"My cat is called Miso."}`))
	}
	if err != nil || form.Close() != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/memory/import", leaving{body, leave})
	r.Header.Set("Content-Type", form.FormDataContentType())
	if w := s.serve(r); ctx.Err() == nil || !strings.Contains(w.Body.String(), "1 message imported") {
		t.Errorf("got %s after the browser left, want one stored message", w.Body)
	}
}

// TestExportsAreImported checks that an exported file can be imported, and that a second
// import stores nothing.
func TestExportsAreImported(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	m.Say(t, "", "s", "w", "We use Postgres.")
	s := newSite(t, m)
	w := s.post(t, "/memory/export")
	file := w.Body.String()
	if w.Code != http.StatusOK || strings.Count(file, "\n") < 3 || !strings.Contains(file, "Miso") || !strings.Contains(file, "Postgres") || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), file)
	}
	m.Say(t, "", "s2", "w", "The port is 5433.")
	_, list := s.get(t, "/conversations")
	hash := between(list, `href="/conversation/`, `"`) // of the newest
	if talk := s.post(t, "/memory/export", "session", hash).Body.String(); strings.Contains(talk, "Postgres") || !strings.Contains(talk, "5433") {
		t.Errorf("of one conversation: %s", talk)
	}
	one := s.post(t, "/memory/export", "group", servicetest.OwnersGroup).Body.String()
	if strings.Contains(one, "Postgres") || !strings.Contains(one, "Miso") {
		t.Errorf("of one group: %s", one)
	}

	fresh := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{}))
	w = fresh.send(t, file)
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "messages imported, 0 already present") {
		t.Errorf("%d %s", w.Code, body)
	} else {
		fresh.wellFormed(t, "import", body)
	}
	if body := fresh.send(t, file).Body.String(); !strings.Contains(body, "0 messages imported, ") {
		t.Errorf("again: %s", body)
	}
	if !strings.Contains(fresh.texts(t), "Miso") {
		t.Errorf("got %s", fresh.texts(t))
	}
}

// TestFilesThatCannotBeImported checks that the import reports the fault of a file.
func TestFilesThatCannotBeImported(t *testing.T) {
	s := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{}))
	for text, want := range map[string]string{
		"":                               "No file was sent, or it is empty.",
		"no json":                        "line 1 cannot be read",
		`{"role":"robot","content":"x"}`: "robot",
		"PK\x05\x06" + strings.Repeat("\x00", 18): "no conversations.json",
	} {
		w := s.send(t, text)
		if w.Code != http.StatusBadRequest || !strings.Contains(strings.ToLower(w.Body.String()), strings.ToLower(want)) {
			t.Errorf("%q: %d, want %q: %s", text, w.Code, want, w.Body)
		}
	}
	if w := s.post(t, "/memory/import"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "The file did not arrive") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestSearch checks that the page marks words, and links results to conversations and changes; and
// the order of a chat.
func TestSearch(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	m.Say(t, "", "s2", "github_repo:github.com/acme/widgets", "The VPN gateway is gw-7.")
	s := newSite(t, m)
	for at, want := range map[string][]string{
		"/search?q=vpn+gateway":                        {"<mark>VPN</mark>", "<mark>gateway</mark>", "in acme/widgets", `href="/conversation/`, `#correct"`, `back=%2Fsearch%3Fq%3Dvpn`},
		"/search?q=What+is+my+cat+called%3F&sort=chat": {"What the message would get", ">shown</span>", "recall.min_score is", "Miso"},
		"/search?speaker=model&kind=message":           {"2 results", "I see."},
		"/search?q=cat&since=2999-01-01":               {"0 results", "Nothing stored matches"},
		"/search?since=0001-01-01&until=zero":          {"is not a time"},
	} {
		_, body := s.get(t, at)
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %q: %s", at, w, body)
			}
		}
		s.wellFormed(t, at, body)
	}
}

// TestSearch_Copies checks that a statement of several conversations and projects is one row, and that its page
// and a selection change all copies.
func TestSearch_Copies(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for i, where := range []string{"", "", "github_repo:github.com/acme/widgets"} {
		m.Say(t, "", fmt.Sprintf("s%d", i), where, "The heron sleeps in the boathouse.")
	}
	s := newSite(t, m)
	const page = "/search?q=boathouse&speaker=person&state=valid"
	_, body := s.get(t, page)
	for _, want := range []string{"1 result<", "Said in 3 conversations.", "acme/widgets"} {
		if !strings.Contains(body, want) {
			t.Errorf("lacks %q: %s", want, body)
		}
	}
	s.wellFormed(t, page, body)
	id := regexp.MustCompile(`name="message" value="([^"]+)"`).FindStringSubmatch(body)[1]
	at := regexp.MustCompile(`href="(/message/[^"#]+)`).FindStringSubmatch(body)[1]
	s.has(t, strings.ReplaceAll(at, "&amp;", "&"), "Said in 2 more conversations.", true)
	if w := s.post(t, "/search/change?q=heron", "do", "export", "message", id); strings.Count(w.Body.String(), "boathouse") != 2 {
		t.Errorf("exported: %s", w.Body)
	}
	w := s.post(t, "/search/change?q=heron", "do", "remove", "message", id)
	s.has(t, page, "Nothing stored matches", true)
	redirects(t, s.post(t, "/changes/undo", "id", strings.TrimPrefix(changeID.FindString(w.Header().Get("Location")), "undo=")), "/changes?done=line-undone")
	s.has(t, page, "Said in 3 conversations.", true)
	redirects(t, s.post(t, "/message/"+url.PathEscape(id)+"/correct", "text", "The heron sleeps in the reeds.", "back", "/"), "/?done=corrected&undo")
	s.has(t, page, "Nothing stored matches", true)
	s.has(t, "/search?q=heron+reeds&state=valid&kind=message", "acme/widgets", true)
}

// TestSearch_Narrower checks the links to a search of a day, a span or a client.
func TestSearch_Narrower(t *testing.T) {
	s := search{Query: "job", SearchFilter: service.SearchFilter{Since: "2026-11-24", Until: "2026-11-24"}, Hits: []hitView{{Hit: service.Hit{Client: "codex"}}}}
	s.narrow(time.Date(2026, 11, 30, 23, 0, 0, 0, time.FixedZone("east", 3600)))
	var got []string
	for _, n := range s.Narrower {
		got = append(got, fmt.Sprintf("%s %s %t", n.Name, strings.TrimPrefix(n.Href, "/search?"), n.Here))
	}
	want := []string{
		"Any day q=job false", "Today q=job&since=2026-11-30&until=2026-11-30 false", "Yesterday q=job&since=2026-11-29&until=2026-11-29 false",
		"Saturday q=job&since=2026-11-28&until=2026-11-28 false", "Friday q=job&since=2026-11-27&until=2026-11-27 false", "Thursday q=job&since=2026-11-26&until=2026-11-26 false",
		"Wednesday q=job&since=2026-11-25&until=2026-11-25 false", "Tuesday q=job&since=2026-11-24&until=2026-11-24 true",
		"7 days q=job&since=2026-11-24&until=2026-11-30 false", "30 days q=job&since=2026-11-01&until=2026-11-30 false",
		"Any client q=job&since=2026-11-24&until=2026-11-24 true", "codex client=codex&q=job&since=2026-11-24&until=2026-11-24 false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestConversation_Unstored checks that a conversation without stored messages, which Live may lead to, has an
// explanation.
func TestConversation_Unstored(t *testing.T) {
	s := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{}))
	status, body := s.get(t, "/conversation/a355887fe380")
	if status != http.StatusNotFound || !strings.Contains(body, "No message of this conversation is stored.") || !strings.Contains(body, `<p><a href="/live">Live</a></p>`) {
		t.Errorf("%d %s", status, body)
	}
	s.wellFormed(t, "conversation", body)
}

// TestForgetting_Graphiti checks that a page names the rest of a forget in Graphiti.
func TestForgetting_Graphiti(t *testing.T) {
	g, err := graphititest.Start(graphititest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = g.Close() })
	c, err := rest.New(remote.Options{Endpoint: g.URL()})
	must(t, err)
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Graph: c.Memory()})
	m.Say(t, "", "s", "", "My cat is called Miso.")
	m.Say(t, "", "s", "", "My dog is called Rex.")
	s := newSite(t, m)
	m.Settle(t)
	for _, call := range []graphititest.Call{graphititest.Forget, graphititest.Episodes, graphititest.DropEpisode} {
		g.Always(call, graphititest.Refuse())
	}
	redirects(t, s.post(t, "/message/"+s.idOf(t, "Miso")+"/forget", "back", "/memory"), "/memory?done=forget&left=1")
	redirects(t, s.post(t, "/memory/forget", "typed", "forget everything"), "/memory?done=forget&left=2")
	if _, page := s.get(t, "/memory?done=forget&left=1"); !strings.Contains(page, "1 forgotten part may still be in Graphiti") {
		t.Errorf("got %s", page)
	}
}

// TestTimeline_Order checks that the timeline has days of the visitor's zone, and each question
// above its answer.
func TestTimeline_Order(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	lines := []service.Line{{Role: "user", Content: "Where is the kiln?", Timestamp: "2026-11-24T23:30:00Z"}, {Role: "assistant", Content: "In the shed.", Timestamp: "2026-11-24T23:30:05Z"}}
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Selector: service.Selector{Session: "s"}, Lines: lines}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/memory/show?group=user_josh", nil)
	r.AddCookie(&http.Cookie{Name: "zone", Value: "Europe/Vienna"})
	body := newSite(t, m).serve(r).Body.String()
	question, answer := strings.Index(body, "Where is the kiln?"), strings.Index(body, "In the shed.")
	if question < 0 || answer < question || !strings.Contains(body, "<h3>2026-11-25</h3>") || !strings.Contains(body, "Days: Europe/Vienna") {
		t.Errorf("got %s", body)
	}
}

// TestResultsAreChanged checks that selected results of a search, and all of them, are ended, moved,
// exported, confirmed and deleted, and that the page Changes undoes that.
func TestResultsAreChanged(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for i, text := range []string{"Our database is MySQL.", "Our database needs a backup.", "Our cat is called Miso."} {
		m.Say(t, "", "s"+strings.Repeat("x", i), "", text)
	}
	m.Say(t, "", "p", "w", "The wharf is closed.")
	s := newSite(t, m)
	ended := func() string { _, body := s.get(t, "/search?state=ended&kind=message"); return body }
	undo := func(w *httptest.ResponseRecorder) {
		t.Helper()
		id := strings.TrimPrefix(changeID.FindString(w.Header().Get("Location")), "undo=")
		if _, body := s.get(t, "/changes"); !strings.Contains(body, id) {
			t.Errorf("the page Changes lacks %q: %s", id, body)
		}
		redirects(t, s.post(t, "/changes/undo", "id", id), "/changes?done=line-undone")
	}
	mysql := s.idOf(t, "MySQL")
	w := s.post(t, "/search/change?q=database", "do", "end", "message", mysql)
	redirects(t, w, "/search?done=end&q=database&undo")
	if got := ended(); !strings.Contains(got, "MySQL") || strings.Contains(got, "backup") {
		t.Errorf("ended: %s", got)
	}
	undo(w)
	w = s.post(t, "/search/change?q=database", "do", "end", "all", "on")
	if got := ended(); !strings.Contains(got, "MySQL") || !strings.Contains(got, "backup") || strings.Contains(got, "Miso") {
		t.Errorf("all ended: %s", got)
	}
	if undo(w); strings.Contains(ended(), "MySQL") {
		t.Error("the undo left messages ended")
	}
	w = s.post(t, "/search/change?q=MySQL", "do", "move", "message", mysql, "to", "w")
	if _, body := s.get(t, "/memory/show?group=workspace_w"); !strings.Contains(body, "MySQL") {
		t.Errorf("not moved: %d, %s", w.Code, w.Body)
	}
	undo(w)
	if w := s.post(t, "/search/change?q=database", "do", "export", "message", mysql); !strings.Contains(w.Body.String(), "MySQL") || strings.Contains(w.Body.String(), "backup") {
		t.Errorf("exported: %s", w.Body)
	}
	redirects(t, s.post(t, "/search/change", "do", "forget", "message", mysql), "/search?done=forget")
	if _, body := s.get(t, "/search?q=MySQL"); strings.Contains(body, "Our database is") {
		t.Errorf("left: %s", body)
	}
	if w := s.post(t, "/search/change", "do", "end"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "No row is selected") {
		t.Errorf("without a selection: %d %s", w.Code, w.Body)
	}
}

// TestOfTwoValuesOneStays checks that the page of valid facts shows two values of one thing side by side,
// and that to keep one ends the other, which can be undone.
func TestOfTwoValuesOneStays(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for _, text := range []string{"The nightly job starts at 2.", "The nightly job starts at 3.", "Our database is Postgres."} {
		m.Say(t, "", "s", "", text)
	}
	s := newSite(t, m)
	const page = "/search?kind=fact&state=valid"
	_, body := s.get(t, page)
	forms := regexp.MustCompile(`(?s)<form method="post" action="([^"]+)" class="spoken">.*?</form>`).FindAllStringSubmatch(body, -1)
	if len(forms) != 2 || strings.Contains(forms[0][0]+forms[1][0], "Postgres") {
		t.Fatalf("got %d forms: %s", len(forms), body)
	}
	old := s.idOf(t, "starts at 2")
	for _, form := range forms {
		if strings.Contains(form[0], "starts at 3") != strings.Contains(form[0], `name="message" value="`+old+`"`) {
			t.Errorf("%s does not end the other one", form[0])
		}
	}
	w := s.post(t, strings.ReplaceAll(forms[0][1], "&amp;", "&"), "message", old, "do", "end")
	redirects(t, w, "/search?done=end&kind=fact&state=valid&undo")
	if _, body := s.get(t, page); strings.Contains(body, "Two values") || strings.Contains(body, "starts at 2") {
		t.Errorf("afterwards: %s", body)
	}
	if _, body := s.get(t, w.Header().Get("Location")); !strings.Contains(body, `action="/changes/undo"`) {
		t.Errorf("the notice has no undo: %s", body)
	}
}

// TestPromotedText checks that pages show a promoted text without its form in the memory, also in
// the fields to correct it.
func TestPromotedText(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Selector: service.Selector{Workspace: widgets}, Promotion: service.Promotion{Kind: "decision", Scope: "workspace", Text: "Commits are signed."}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	shown, err := service.Show.Run(t.Context(), m.Host, &service.ShowRequest{Selector: service.Selector{Workspace: widgets}, Last: 1})
	if err != nil || len(shown.Messages) != 1 {
		t.Fatalf("got %+v, %v", shown.Messages, err)
	}
	group := shown.Messages[0].Group
	for _, at := range []string{"/memory/show?group=" + group, "/message/" + shown.Messages[0].ID + "?group=" + group} {
		s.has(t, at, "Commits are signed.", true)
		s.has(t, at, "graphiti_episode", false)
	}
}
