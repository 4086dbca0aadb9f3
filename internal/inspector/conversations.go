package inspector

import (
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// conversations is the list of conversations, the newest first.
type conversations struct {
	List []conversationRow
	All  int
	More string // the same page with more of them
	Note string
}

type conversationRow struct {
	service.Conversation
	Href string
}

const (
	rowsAtFirst = 50
	rowsAtMost  = 1000
)

// limit is how many rows a page shows.
func (v *visit) limit() int {
	n, err := strconv.Atoi(v.r.FormValue("limit"))
	if err != nil {
		return rowsAtFirst
	}
	return min(max(n, 1), rowsAtMost)
}

// more is the address of a page with more rows; empty if there are no more.
func (v *visit) more(path string, shown, all int, with ...string) string {
	if shown >= all || shown >= rowsAtMost {
		return ""
	}
	return v.whose().at(path, append(with, "limit", strconv.Itoa(min(2*max(shown, rowsAtFirst), rowsAtMost)))...)
}

func (v *visit) conversations() error {
	if known, err := v.somebody("Conversations"); !known {
		return err
	}
	got, err := look(v, service.List, func(in *service.ListRequest) {
		in.Selector, in.Limit = v.whose().selector(), v.limit()
	})
	if err != nil {
		return err
	}
	c := conversations{All: got.AllConversations, Note: got.Note, More: v.more("/conversations", len(got.Conversations), got.AllConversations)}
	for _, one := range got.Conversations {
		c.List = append(c.List, conversationRow{one, v.whose().at("/conversation/" + one.Hash)})
	}
	return v.show("conversations", "Conversations", &c)
}
