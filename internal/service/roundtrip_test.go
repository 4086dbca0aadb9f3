package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
)

// everyState fills a memory with messages, rules and facts in each state.
func everyState(t *testing.T, m *servicetest.Fixture) {
	t.Helper()
	for i, text := range []string{
		"Remember that the staging server is called otter.", "Forget that the staging server is called otter.",
		"The booking number of the hotel is QX7781.", "Always answer in German.", "Never commit to main.",
		"Always run make lint first.", "Please remember that I prefer Oolong in the morning.", "Please remember that I prefer window seats.",
		"Please remember that I live in Porto.", "Always answer in French.", "The port is 4100.",
	} {
		m.Talk(t, ownerIn(widgets, fmt.Sprintf("session %d", i)), text)
	}
	m.Talk(t, ownerIn("", "outside"), "I breed alpacas.")
	m.Talk(t, ownerIn("", "outside"), "Always use metric units.")
	m.Settle(t)
	of := service.Selector{Workspace: widgets}
	line := func(text string) string {
		for _, l := range run(t, m, service.Pending, service.PendingRequest{Selector: of, All: true}).Lines {
			if strings.Contains(l.Text, text) {
				return l.ID
			}
		}
		t.Fatalf("no line says %q", text)
		return ""
	}
	run(t, m, service.Settle, service.SettleRequest{Selector: of, Accept: []string{line("Oolong")}, Reject: []string{line("window")}})
	run(t, m, service.Promote, service.PromoteRequest{Selector: of, Promotion: service.Promotion{Kind: "decision", Scope: "workspace", Text: "Postgres"}})
	m.Settle(t)
	for _, msg := range run(t, m, service.Show, service.ShowRequest{Selector: of, Last: 100}).Messages {
		if msg.Text == "The port is 4100." {
			run(t, m, service.Correct, service.CorrectRequest{Selector: service.Selector{Workspace: widgets, Message: msg.ID}, Text: "The port is 4200."})
		}
	}
	m.Settle(t)
	d, _ := m.Backend.Distiller()
	names := make(map[string][]string) // of messages, by group
	for _, g := range run(t, m, service.Groups, service.Selector{}).Groups {
		for r, err := range m.Backend.Rows(t.Context(), g.Group, graphiti.Filter{Text: true}) {
			must(t, err)
			names[g.Group] = append(names[g.Group], r.Name)
		}
	}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for group, of := range names {
		_, err := d.RestoreDistilled(t.Context(), group, []graphiti.Distilled{
			{Name: "fact-1", Text: "The hotel is booked.", Role: graphiti.RoleUser, Kind: "state", About: "hotel", Keys: []string{"lodging"}, Sources: of[:1], Since: at, Until: at.Add(time.Hour), Made: at, EndedBy: "fact-2"},
			{Name: "fact-2", Text: "The hotel is cancelled.", Role: graphiti.RoleUser, Kind: "state", About: "hotel", Keys: []string{"lodging"}, Sources: of[:1], Since: at.Add(time.Hour), Made: at.Add(time.Hour)},
		})
		must(t, err)
	}
}

// exportAll returns an export of all groups.
func exportAll(t *testing.T, m *servicetest.Fixture) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, g := range run(t, m, service.Groups, service.Selector{}).Groups {
		err := m.Memory.Export(t.Context(), service.Selector{Group: g.Group}, func(r service.Record) error { return json.NewEncoder(&out).Encode(r) })
		must(t, err)
	}
	return out.Bytes()
}

// importAll imports an export.
func importAll(t *testing.T, m *servicetest.Fixture, export []byte) (done service.Imported) {
	t.Helper()
	im := service.FileImport{
		Lines: transcripts.Lines(bytes.NewReader(export)),
		Call: func(ctx context.Context, in service.ImportRequest) (service.Imported, error) {
			return m.Memory.Import(ctx, &in)
		}, Tell: func(int) {},
	}
	done, err := im.Run(t.Context(), service.Selector{})
	must(t, err)
	m.Settle(t)
	return done
}

// readings are the answers of all operations that read a memory.
func readings(t *testing.T, m *servicetest.Fixture) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, s := range []string{`"user":"me",`, `"workspace":"` + widgets + `",`, `"workspace":"` + widgets + `","own":true,`} {
		for _, c := range []string{
			`memory/show {"last":100}`, `memory/list {}`, `memory/search {"kind":"fact","newest":true,"limit":100}`, `memory/pending {"all":true}`,
			`memory/search {"query":"Which port?","all":true}`, `memory/search {"query":"hotel"}`, `memory/search {"query":"staging server","all":true}`,
		} {
			op, in, _ := strings.Cut(c, " ")
			if op == "memory/list" && strings.Contains(s, "workspace") {
				continue
			}
			in = strings.Replace(in, "{", "{"+s, 1)
			in = strings.Replace(in, ",}", "}", 1)
			out, err := answerOf(t, m, service.Operator, op, in)
			if err != nil {
				t.Fatalf("%s %s: %v", op, in, err)
			}
			b, _ := json.MarshalIndent(out, "", " ")
			all[op+" "+in] = string(b)
		}
	}
	for place, who := range map[string]graphiti.Who{"project": ownerIn(widgets, "new"), "outside": ownerIn("", "outside again")} {
		block, _ := m.Talk(t, who, "hello")
		all["card "+place] = block
	}
	return all
}

// TestExport_Whole checks that an export carries a memory: after an import into an empty directory
// each operation gives the same answers, and a second import changes nothing.
func TestExport_Whole(t *testing.T) {
	t.Parallel()
	from, to := servicetest.Open(t, t.TempDir(), servicetest.Options{}), servicetest.Open(t, t.TempDir(), servicetest.Options{})
	everyState(t, from)
	export := exportAll(t, from)
	if done := importAll(t, to, export); done.Known > 0 || done.Waiting > 0 || done.Kept+done.Rules != bytes.Count(export, []byte("\n")) {
		t.Errorf("the import gave %+v, want %d lines kept", done, bytes.Count(export, []byte("\n")))
	}
	if again := exportAll(t, to); !bytes.Equal(again, export) {
		t.Errorf("an export of the copy differs (-want +got):\n%s", cmp.Diff(strings.Split(string(export), "\n"), strings.Split(string(again), "\n")))
	}
	if done := importAll(t, to, export); done.Kept+done.Rules > 0 {
		t.Errorf("a second import gave %+v, want none kept", done)
	}
	if diff := cmp.Diff(readings(t, from), readings(t, to)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// TestExport_Unsigned checks an export without the signatures of this installation: its rules wait,
// ended messages stay ended, and a rule with a time in the future can be ended.
func TestExport_Unsigned(t *testing.T) {
	t.Parallel()
	from, to := servicetest.Open(t, t.TempDir(), servicetest.Options{}), servicetest.Open(t, t.TempDir(), servicetest.Options{})
	everyState(t, from)
	export := signatures.ReplaceAll(exportAll(t, from), []byte(`"signed":""`))
	export = regexp.MustCompile(`"time":"20..`).ReplaceAll(export, []byte(`"time":"2200`))
	to.Talk(t, ownerIn(widgets, "before"), "Never commit to main.")
	done := importAll(t, to, export)
	of := service.Selector{Workspace: widgets}
	waits := 0
	for _, l := range run(t, to, service.Pending, service.PendingRequest{Selector: of, All: true}).Lines {
		if l.State == card.Pending {
			waits++
		}
		if l.OnCard != (l.Text == "Never commit to main.") {
			t.Errorf("line %+v; want only the rule of before to apply", l)
		}
	}
	if waits == 0 || done.Waiting < waits {
		t.Errorf("the import gave %+v, and %d lines wait", done, waits)
	}
	settled := run(t, to, service.Settle, service.SettleRequest{Selector: of, Accept: []string{"all"}})
	for _, l := range settled.Lines {
		run(t, to, service.Settle, service.SettleRequest{Selector: of, End: []string{l.ID}})
	}
	for _, l := range run(t, to, service.Pending, service.PendingRequest{Selector: of, All: true}).Lines {
		if l.OnCard && l.Text != "Never commit to main." {
			t.Errorf("line %+v still applies after its end", l)
		}
	}
	for _, msg := range run(t, to, service.Show, service.ShowRequest{Selector: of, Last: 100}).Messages {
		if strings.HasPrefix(msg.Text, "Remember that the staging") && msg.Ended == "" {
			t.Errorf("message %+v has not ended", msg)
		}
	}
}
