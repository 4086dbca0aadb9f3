package inspector

import (
	"strings"
	"testing"

	"github.com/a-h/templ"
)

// TestComponents_EscapeByContext: a text that would end its context is escaped, and a link
// to a script is refused.
func TestComponents_EscapeByContext(t *testing.T) {
	const script, refused = "<script>alert(1)</script>", "about:invalid"
	link := func(to string) templ.Component { return (&rowView{Href: to}).message() }
	for name, tc := range map[string]struct {
		component templ.Component
		want, bad string
	}{
		"text":               {text(script), "&lt;script&gt;", "<script>"},
		"attribute":          {hidden("id", `"><b>`), `value="&#34;&gt;&lt;b&gt;"`, "<b>"},
		"class":              {(&plot{Title: `"><b>`}).html(), "&lt;b&gt;", "<b>"},
		"title":              {(&frame{Title: "</title>" + script, Main: text("")}).page(), "&lt;/title&gt;", "<script>"},
		"textarea":           {(&search{Query: "</textarea>" + script}).main(), "&lt;/textarea&gt;", "<script>"},
		"pre":                {(&decisionView{Shown: true, Raw: "</pre>" + script}).result(), "&lt;/pre&gt;", "<script>"},
		"title of a drawing": {(&plot{Most: 1, Names: []string{"</title></svg>" + script}, Days: []bars{{Values: []int{1}}}}).html(), "&lt;/svg&gt;", "<script>"},
		"link":               {link(`/message/1?a=1&b="><i>`), `href="/message/1?a=1&amp;b=&#34;&gt;&lt;i&gt;"`, "<i>"},
		"script link":        {link("javascript:alert(1)"), refused, "javascript:"},
		"mixed-case link":    {link("JavaScript:alert(1)"), refused, "JavaScript:"},
		"spaced link":        {link("\tjava\nscript:alert(1)"), refused, "script:"},
		"data link":          {link("data:text/html," + script), refused, "data:"},
		"action":             {(&importing{Action: "javascript:alert(1)"}).main(), refused, "javascript:"},
		"message in a link":  {(&messagePage{ID: "../a?b#c"}).form("pin"), `action="/message/..%2Fa%3Fb%23c/pin"`, "../"},
	} {
		page, err := fill(tc.component)
		must(t, err)
		if got := string(page); !strings.Contains(got, tc.want) || strings.Contains(got, tc.bad) {
			t.Errorf("%s: got %s, want %q and no %q", name, got, tc.want, tc.bad)
		}
	}
}
