package inspector

import (
	"fmt"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// conversations is the list of conversations, the newest first.
type conversations struct {
	List  []conversationRow
	All   int
	Pager pager
	Until string // the day to jump to
	whose
}

type conversationRow struct {
	service.Conversation
	Href string
}

const (
	rowsAtOnce = 50   // rows of a page
	rowsAtMost = 1000 // rows in reach: operations list no more
)

// pager leads to the other pages of a list.
type pager struct{ Newer, Older, Span string }

// skipped returns the number of rows on the pages before this one.
func (v *visit) skipped() int {
	n, err := strconv.Atoi(v.r.FormValue("skip"))
	if err != nil {
		return 0
	}
	return min(max(n, 0), rowsAtMost-rowsAtOnce)
}

// listed returns the number of rows that an operation has to list for this page.
func (v *visit) listed() int { return v.skipped() + rowsAtOnce }

// onPage returns the rows of this page, with links to the others. path and with are the
// address of the list, all is its length.
func onPage[T any](v *visit, list []T, all int, path string, with ...string) ([]T, pager) {
	skip := min(v.skipped(), len(list))
	list = list[skip:]
	at := func(skip int) string {
		n := ""
		if skip > 0 {
			n = strconv.Itoa(skip)
		}
		return v.whose().at(path, append(with, "skip", n)...)
	}
	var p pager
	if skip > 0 {
		p.Newer = at(skip - rowsAtOnce)
	}
	if end := skip + len(list); end < min(all, rowsAtMost) {
		p.Older = at(end)
	}
	if len(list) > 0 {
		p.Span = fmt.Sprintf("%s to %s of %s", grouped(skip+1), grouped(skip+len(list)), grouped(all))
	}
	return list, p
}

func (v *visit) conversations() error {
	if known, err := v.choosePerson("Conversations"); !known {
		return err
	}
	until := v.r.FormValue("until")
	got, err := look(v, service.List, func(in *service.ListRequest) {
		in.Selector, in.Limit, in.Before = v.whose().selector(), v.listed(), v.moment(until, true)
	})
	if err != nil {
		return err
	}
	c := conversations{All: got.AllConversations, Until: until, whose: v.whose()}
	var rows []service.Conversation
	rows, c.Pager = onPage(v, got.Conversations, got.AllConversations, "/conversations", "until", until)
	for _, one := range rows {
		c.List = append(c.List, conversationRow{one, v.whose().conversationAt(one.Hash, "")})
	}
	return v.show("Conversations", c.main())
}
