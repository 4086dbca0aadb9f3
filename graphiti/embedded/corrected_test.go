package embedded

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestSearch_Corrected checks that a question finds the newest value alone after corrections, for each
// number of facts from Graphiti.
func TestSearch_Corrected(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	for _, corrections := range []int{1, 3, 20} {
		for read, facts := range map[string]int{"none": 0, "the first": 1, "half": corrections/2 + 1, "all but one": corrections, "all": corrections + 1} {
			for _, ends := range []bool{true, false} {
				if facts < 2 && !ends {
					continue
				}
				t.Run(fmt.Sprintf("%d corrections, facts read of %s, ended %v", corrections, read, ends), func(t *testing.T) {
					t.Parallel()
					e := openEmbedded(t)
					say := func(i int) string {
						if i == 0 {
							return "The archive server of Borealis listens on port 6543."
						}
						return fmt.Sprintf("The archive server of Borealis has moved now to port %d.", 8000+i)
					}
					at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
					for i := range corrections + 1 {
						turn := "graphiti-proxy.turn." + strconv.Itoa(i)
						if err := e.Write(t.Context(), "g", []graphiti.Row{{Name: turn + ".user", Role: graphiti.RoleUser, Text: say(i), Said: at(i)}, {Name: turn + ".assistant", Role: graphiti.RoleAssistant, Text: "Fine.", Said: at(i)}}); err != nil {
							t.Fatal(err)
						}
					}
					for i := range facts {
						f := graphiti.Distilled{Name: graphiti.PulledPrefix + strconv.Itoa(i), Text: say(i), Role: graphiti.RoleUser, Since: at(i), Made: at(i), Sources: []string{"graphiti-proxy.turn." + strconv.Itoa(i) + ".user"}}
						if ends && i < facts-1 {
							f.Until = at(i + 1)
						}
						must(t, e.Pull(t.Context(), "g", []graphiti.Distilled{f}))
					}
					for _, q := range []string{"On which port does the archive server of Borealis listen?", "Which port has the archive server of Borealis?", "Where does Borealis' archive server listen?"} {
						found, err := e.Search(t.Context(), []string{"g"}, q, 6)
						must(t, err)
						var got []string
						for _, f := range found {
							got = append(got, regexp.MustCompile(`\d{4}\b.?$|port \d+`).FindString(f.Text))
						}
						if want := fmt.Sprint("port ", 8000+corrections); !slices.Equal(got, []string{want}) {
							t.Errorf("%s: got %q, want %q", q, got, want)
						}
					}
				})
			}
		}
	}
}

// TestSearch_NotCorrected checks that later statements replace no valid one.
func TestSearch_NotCorrected(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, first, second, question, want string }{
		{"another property", "The archive server of Borealis listens on port 6543.", "The archive server of Borealis is now on Debian 13.", "On which port does the archive server of Borealis listen?", "6543"},
		{"another thing", "The archive server of Borealis listens on port 6543.", "The mail relay of Borealis has moved now to port 8001.", "On which port does the archive server of Borealis listen?", "6543"},
		{"another number of the same kind", "My locker K1x is number 4417.", "From now on my locker K2x is number 4418.", "What is the number of my locker K1x?", "K1x"},
		{"another person", "My brother Tom has the phone number 4417.", "My brother Max now has the phone number 4418.", "Which phone number has my brother Tom?", "Tom"},
		{"no change", "I play the piano.", "I also play the accordion.", "Which instruments do I play?", "piano"},
		{"a question", "The archive server of Borealis listens on port 6543.", "Has the archive server of Borealis moved now to port 8001?", "On which port does the archive server of Borealis listen?", "6543"},
		{"the past", "The archive server of Borealis listens on port 6543.", "The archive server of Borealis has moved now to port 8001.", "Which port did the archive server of Borealis have before 2026-01-02?", "6543"},
		{"more than a value", "Our cat Miso sleeps in the red basket.", "Our cat Miso now goes to the vet in Delft with the red basket every second Monday.", "Where does our cat Miso sleep?", "sleeps in the red"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := openEmbedded(t)
			for i, text := range []string{tc.first, tc.second} {
				at := time.Date(2026, 1, 1+i, 9, 0, 0, 0, time.UTC)
				if err := e.Write(t.Context(), "g", []graphiti.Row{{Name: "m" + strconv.Itoa(i), Role: graphiti.RoleUser, Text: text, Said: at}}); err != nil {
					t.Fatal(err)
				}
			}
			found, err := e.Search(t.Context(), []string{"g"}, tc.question, 6)
			if err != nil || !slices.ContainsFunc(found, func(f graphiti.Fact) bool { return strings.Contains(f.Text, tc.want) }) {
				t.Errorf("got %v, %v, want %q", found, err, tc.want)
			}
		})
	}
}
