package inspector

import (
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// changes is the page with the changes of the last thirty days.
type changes struct {
	whose
	List  []service.Change
	Pager pager
}

func (v *visit) changes() error {
	if known, err := v.choosePerson("Changes"); !known {
		return err
	}
	c := changes{whose: v.whose()}
	got, err := look(v, service.History, func(in *service.HistoryRequest) { in.Selector, in.Limit = c.selector(), v.listed() })
	if err != nil {
		return err
	}
	c.List, c.Pager = onPage(v, got.Changes, got.All, "/changes")
	return v.show("Changes", c.main())
}

// undoChanges undoes the changes of a form, or deletes a copy for an undo.
func (v *visit) undoChanges() error {
	notice, now := "line-undone", v.r.FormValue("do") == "delete"
	if now {
		notice = "copy-deleted"
	}
	for _, id := range append([]string{v.r.FormValue("id")}, v.r.PostForm["more"]...) {
		_, err := call(v, service.Undo, func(in *service.UndoRequest) { in.Selector, in.ID, in.Delete = v.whose().selector(), id, now }, nil)
		if err != nil {
			return err
		}
	}
	return v.done(v.back(v.whose().at("/changes")), notice)
}

// changeMany changes the selected results of a search, or all of them. The address is that of the
// search.
func (v *visit) changeMany() error {
	s, err := v.searched()
	if err != nil {
		return err
	}
	do, messages, lines := v.r.FormValue("do"), v.r.PostForm["message"], v.r.PostForm["line"]
	if v.r.PostForm.Get("all") != "" {
		got, err := v.results(s, rowsAtMost)
		if err != nil {
			return err
		}
		messages, lines = nil, nil
		for i := range got.Facts {
			switch h := v.hit(&got.Facts[i], ""); {
			case h.Rule != nil && h.State != service.Ended:
				lines = append(lines, h.ID)
			case h.Href != "":
				messages = append(messages, h.ID)
			}
		}
	}
	if len(messages)+len(lines) == 0 {
		return errNothing
	}
	if do == "export" {
		return v.exportOnly(strings.Fields(strings.Join(messages, " ")))
	}
	back := s.at("/search", s.query()...)
	var undo []string
	if len(messages) > 0 && do != "accept" {
		out, err := call(v, service.ChangeMany, func(in *service.ManyRequest) {
			in.Selector, in.Do, in.Messages = v.ofWhom(s.Group), do, messages
			if do == "move" {
				in.To = v.r.FormValue("to")
			}
		}, nil)
		if err != nil {
			return err
		}
		v.left, undo = out.Left(), append(undo, out.Undo)
	}
	if len(lines) > 0 && (do == "accept" || do == "end") {
		out, err := call(v, service.Settle, func(in *service.SettleRequest) {
			in.Selector = v.ofWhom(s.Group)
			if in.End = lines; do == "accept" {
				in.Accept, in.End = lines, nil
			}
		}, nil)
		if err != nil {
			return err
		}
		undo = append(undo, out.Undo)
	}
	return v.done(back, do, slices.DeleteFunc(undo, func(id string) bool { return id == "" })...)
}
