package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// PastTurn is a finished turn from a client's transcript.
type PastTurn struct {
	Client    string   `json:"client"`
	Session   string   `json:"session"`             // the conversation's id in live requests
	Workspace string   `json:"workspace,omitempty"` // key of the project
	User      string   `json:"user"`
	Assistant string   `json:"assistant"`      // empty if the person's next message came before an answer
	Said      string   `json:"said,omitempty"` // RFC 3339
	Answered  string   `json:"answered,omitempty"`
	ID        string   `json:"id,omitempty"`   // the client's id of the turn
	Keys      []string `json:"keys,omitempty"` // the provider's ids of the answer and its tool calls
}

// TurnsImport is the input of ImportTurns.
type TurnsImport struct {
	Import string     `json:"import"` // name of the import; forgetting this session takes it back
	Turns  []PastTurn `json:"turns"`
	Dry    bool       `json:"dry,omitempty"` // only count the new turns
}

// ImportTurns stores turns of transcripts like live turns. It skips turns with known ids or
// texts, and invalid turns. No text in them becomes a standing text.
var ImportTurns = Operation[TurnsImport, Imported]{
	Spec: Spec{Name: "memory/import-turns", About: "Import finished turns from transcripts of clients, each once", Size: 16 << 20, Takes: ForgetTimeout},
	Run:  withMemory((*Service).ImportTurns),
	Audit: func(in *TurnsImport, out *Imported) Entry {
		if in.Dry {
			return Entry{"count new turns", in.Import, out.Groups, nil}
		}
		return Entry{"import turns", in.Import, out.Groups, []slog.Attr{slog.Int("kept", out.Kept)}}
	},
}

// ImportTurns carries out the operation.
func (sv *Service) ImportTurns(ctx context.Context, in *TurnsImport) (done Imported, err error) {
	if sv.o.Multi {
		return done, errors.New("identity.mode is multi: the transcripts of a machine belong to one person; import them at that person's own proxy")
	}
	if len(in.Turns) == 0 || len(in.Turns) > maxLines {
		return done, invalid(fmt.Sprintf("send 1 to %d turns", maxLines))
	}
	imported, err := importOf(in.Import)
	if err != nil {
		return done, err
	}
	generation := sv.o.State.Generations.Now()
	turns, asked := make([]ledger.Turn, 0, len(in.Turns)), make(map[string]bool)
	for i := range in.Turns {
		p := &in.Turns[i]
		t, err := sv.pastTurn(p)
		if err != nil { // a file of others may contain anything
			done.NotTaken++
			continue
		}
		t.Import, t.Generation, t.Asked = imported, generation, asked[p.Session]
		asked[p.Session] = words.HasQuestion(p.Assistant)
		for _, target := range t.Targets {
			if !slices.Contains(done.Groups, target.Group) {
				done.Groups = append(done.Groups, target.Group)
			}
		}
		turns = append(turns, t)
	}
	if in.Dry {
		done.Kept, err = sv.o.Pipeline.New(ctx, turns)
		done.Known = len(turns) - done.Kept
		return done, err
	}
	if err := sv.full(turns[0].Owner); err != nil {
		return done, err
	}
	if done.Kept, err = sv.o.Pipeline.AddAll(ctx, turns); done.Kept > 0 {
		done.change = Change{What: "import", Import: in.Import}
	}
	done.Known = len(turns) - done.Kept
	return done, err
}

// pastTurn returns a turn with its groups. A backfill gives way to a live turn.
func (sv *Service) pastTurn(p *PastTurn) (t ledger.Turn, err error) {
	who, err := sv.meant(Selector{Workspace: p.Workspace, Session: p.Session})
	if err != nil {
		return t, err
	}
	if strings.TrimSpace(p.User) == "" {
		return t, errors.New("it lacks the person's words")
	}
	said, answered := time.Now(), time.Now()
	for _, at := range []struct {
		text string
		to   *time.Time
	}{{p.Said, &said}, {p.Answered, &answered}} {
		if at.text == "" {
			continue
		}
		if *at.to, err = time.Parse(time.RFC3339, at.text); err != nil {
			return t, fmt.Errorf("time %q: %w", at.text, err)
		}
	}
	return ledger.Turn{
		ID:      ledger.DerivedID("past", p.Client, p.Session, cmp.Or(p.ID, p.Said), p.User), // Said may be the file's time
		Session: who.Session, Owner: who.Owner(), Workspace: who.Workspace, Client: p.Client,
		User: p.User, Assistant: p.Assistant, Said: said, Answered: answered, Keys: p.Keys,
		Targets: sv.namer().Writes(who), Backfill: true, Open: p.Assistant == "",
	}, nil
}
