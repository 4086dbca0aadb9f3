package inspector

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// forgetting is the page for forgetting a memory, with an undo or, after a confirmation, for good.
type forgetting struct {
	whose
	Group, Session string
	Name           string // of the memory to delete
	Word           string // text that confirms the deletion
	Wrong          bool   // the typed text differs from Word
	Goes, Stays    []goes
}

// goes is a memory that is deleted, or that stays because other people wrote to it.
type goes struct {
	Name string
	Part bool // only the messages of the conversation
	service.Kept
	Counted bool
}

func (v *visit) forgetForm() error {
	if known, err := v.choosePerson("Forget"); !known {
		return err
	}
	f, _, err := v.forgetting()
	if err != nil {
		return err
	}
	return v.show("Forget "+f.Name, f.main())
}

// selector returns the selector of the memory to delete.
func (f *forgetting) selector() service.Selector {
	s := f.whose.selector()
	s.Group, s.Session = f.Group, f.Session
	return s
}

// forgetting returns the page for a request, and the groups or parts to delete.
func (v *visit) forgetting() (*forgetting, []ledger.Owned, error) {
	f := &forgetting{whose: v.whose(), Group: v.r.FormValue("group"), Session: v.r.FormValue("session")}
	found, err := v.toForget(f)
	if err != nil {
		return nil, nil, err
	}
	counts := make(map[string]service.Kept)
	list, err := look(v, service.List, func(in *service.ListRequest) { in.Selector, in.Limit = v.ofWhom(f.Group), rowsAtMost })
	if err != nil {
		return nil, nil, err
	}
	for _, k := range list.Memories {
		counts[k.Group] = k
	}
	var doomed []ledger.Owned
	for _, o := range found {
		k, counted := counts[o.Group]
		g := goes{Name: v.nameOf(o), Part: o.Session != "", Kept: k, Counted: counted}
		switch {
		case o.Empty:
		case o.Shared && f.Group == "":
			f.Stays = append(f.Stays, g)
		default:
			f.Goes, doomed = append(f.Goes, g), append(doomed, o)
		}
	}
	switch {
	case f.Session != "":
		f.Name, f.Word = "one conversation", "forget this conversation"
	case f.Group == "":
		f.Name, f.Word = "everything", "forget everything"
		if f.whose != (whose{}) {
			f.Name += " of " + f.whose.selector().Whose()
		}
	case len(f.Goes) > 0:
		f.Name = f.Goes[0].Name
		if f.Word = f.Name; f.Word != oneLine(editable(f.Word)) { // a keyboard cannot type it
			f.Word = "forget"
		}
	}
	return f, doomed, nil
}

// toForget returns the groups, and parts of groups, of the request.
func (v *visit) toForget(f *forgetting) ([]ledger.Owned, error) {
	if f.Group == "" || f.Session != "" {
		m, err := look(v, service.Groups, func(in *service.Selector) { *in = f.selector() })
		return append(m.Groups, m.Parts...), err
	}
	groups, err := v.groups()
	for _, o := range groups {
		if o.Group == f.Group {
			return []ledger.Owned{o}, nil
		}
	}
	return []ledger.Owned{{Group: f.Group}}, err
}

func (v *visit) forget() error {
	f, doomed, err := v.forgetting()
	if err != nil {
		return err
	}
	undoable := v.r.FormValue("do") == "remove"
	if f.Word == "" || !undoable && strings.TrimSpace(v.r.FormValue("typed")) != f.Word {
		f.Wrong = true
		return v.render(http.StatusBadRequest, "Forget "+f.Name, f.main())
	}
	var failed error
	var receipts []byte
	var undo []string
	for _, o := range doomed {
		done, err := call(v, service.Forget, func(in *service.ForgetRequest) { in.Selector, in.Undoable = f.selector().In(o.Group), undoable }, nil)
		if done.Undo != "" {
			undo = append(undo, done.Undo)
		}
		v.left += done.Withdrawn
		failed = errors.Join(failed, err) // a failed deletion can be repeated
		if done.Receipt != nil {
			line, _ := json.Marshal(done.Receipt) // strings and numbers only
			receipts = append(append(receipts, line...), '\n')
		}
	}
	if failed != nil {
		return failed
	}
	if v.r.FormValue("receipt") != "" && receipts != nil {
		v.w.Header().Set("Content-Type", "application/jsonl")
		v.w.Header().Set("Content-Disposition", `attachment; filename="receipt.jsonl"`)
		_, _ = v.w.Write(receipts) // fails only after the browser has left
		return nil
	}
	return v.done(f.at("/memory"), map[bool]string{true: "remove", false: "forget"}[undoable], undo...)
}
