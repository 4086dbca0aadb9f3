package service

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

// A forget that can be undone deletes like any other, but first stores one copy: an export of the
// deleted records, which memory/undo imports. A copy has copyScope before the ID of its change and
// before each of its groups as scopes, and ownScope before the own group of its owner.
const copyScope, ownScope = "removed:", "removed:of:"

// copyFor stores a copy of the records that a change deletes, and then the change.
func (sv *Service) copyFor(ctx context.Context, s *Selector, c *Change, records func(func(Record) error) error) error {
	c.ID, c.Time, c.history = changeID(whatRemove+time.Now().String()), momentOf(time.Now()), sv.historyOf(s)
	c.scopes = []string{copyScope + c.ID}
	for _, g := range c.groups() {
		c.scopes = append(c.scopes, copyScope+g)
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	for _, o := range known {
		if err != nil || !slices.Contains(c.groups(), o.Group) {
			continue
		}
		if err = sv.released(ctx, ledger.Part{Group: o.Group, Owner: o.Owner}); o.Shared {
			err = cmp.Or(err, invalid("undoable: other people wrote to this memory too, so it can only be deleted for good"))
		}
		if own, ok := sv.ownGroup(o.Owner); ok {
			c.scopes = append(c.scopes, ownScope+own)
		}
		if sv.o.Multi && s.User+s.Credential == "" { // a selector of a whole group names no owner
			c.history = historyOfOwner(o.Owner)
		}
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	lines, part := json.NewEncoder(z), &c.Parts[0]
	if err == nil {
		err = records(func(r Record) error {
			if text := graphiti.OneLine(r.Text, maxChanged); r.Where == "memory" && len(part.Old) < textsOfChange && !slices.Contains(part.Old, text) {
				part.Old = append(part.Old, text)
			}
			c.Of, c.Records = Selector{User: r.User, Workspace: r.Workspace, Session: r.Session}.Whose(), c.Records+1
			return lines.Encode(r)
		})
	}
	if err = cmp.Or(err, z.Close()); err == nil {
		err = sv.o.State.Snapshots.Save(ctx, copyScope+c.ID, body.Bytes(), sv.o.State.Generations.Now(), c.scopes...)
	}
	if err == nil {
		var stored []byte // Save does not wait for the disk
		if stored, err = sv.o.State.Snapshots.Load(ctx, copyScope+c.ID); err == nil && len(stored) != body.Len() {
			err = fmt.Errorf("%d of %d bytes are stored", len(stored), body.Len())
		}
	}
	if err == nil {
		c.What = whatRemove
		err = sv.keepChange(ctx, c.history, c)
	}
	if err != nil {
		return fmt.Errorf("not forgotten: store a copy for the undo: %w", err)
	}
	return nil
}

// recordsOf calls f for the records that forgetting messages deletes.
func (sv *Service) recordsOf(ctx context.Context, found []held, f func(Record) error) error {
	names := make(map[string][]string) // by group
	for i := range found {
		h := &found[i]
		names[h.in.Group] = append(names[h.in.Group], h.row.Name)
		err := sv.eachLine(ctx, sv.cardGroups(h), func(l *card.Line) error {
			if h.has(l) {
				names[l.Group] = append(names[l.Group], cmp.Or(l.Promoted, h.row.Name))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, group := range slices.Sorted(maps.Keys(names)) {
		lines := func(l *card.Line) bool { return slices.ContainsFunc(found, func(h held) bool { return h.has(l) }) }
		if err := sv.exportOf(ctx, portion{ledger.Part{Group: group}, names[group], lines}, f); err != nil {
			return err
		}
	}
	return nil
}

// restoreCopy imports the copy of a change, and deletes it.
func (sv *Service) restoreCopy(ctx context.Context, s *Selector, c *Change) error {
	body, err := sv.o.State.Snapshots.Load(ctx, copyScope+c.ID)
	if err == nil && body == nil {
		err = invalid("id: the copy for this undo has expired")
	}
	if err != nil {
		return err
	}
	im := FileImport{
		Lines: func(f func(int, Line) error) (int, error) {
			return 0, eachRecord(body, func(r *Record) error { return f(0, r.Line()) })
		},
		Tell: func(int) {}, Call: func(ctx context.Context, in ImportRequest) (Imported, error) { return sv.Import(ctx, &in) },
	}
	if _, err = im.Run(ctx, Selector{User: s.User, Credential: s.Credential}); err != nil {
		return err
	}
	c.Parts[0].Old = nil // its texts can be forgotten one by one again
	return sv.o.State.Snapshots.Forget(ctx, copyScope+c.ID)
}

// dropCopies deletes the copies with a scope and one of the records, or with nil all, and their changes.
func (sv *Service) dropCopies(ctx context.Context, scope string, meant func(*Record) bool) error {
	var gone []string
	err := sv.o.State.Snapshots.Each(ctx, func(key string, body []byte) error {
		drop := meant == nil
		err := eachRecord(body, func(r *Record) error {
			drop = drop || meant(r)
			return nil
		})
		if drop {
			gone = append(gone, strings.TrimPrefix(key, copyScope))
		}
		return err
	}, scope)
	for _, id := range gone {
		err = cmp.Or(err, sv.o.State.Snapshots.Forget(ctx, copyScope+id))
	}
	return err
}

// dropCopiesOf deletes the copies with records of a part; with an own group, all of its person.
func (sv *Service) dropCopiesOf(ctx context.Context, part ledger.Part) error {
	if part.Session == "" {
		return cmp.Or(sv.dropCopies(ctx, copyScope+part.Group, nil), sv.dropCopies(ctx, ownScope+part.Group, nil))
	}
	return sv.dropCopies(ctx, copyScope+part.Group, func(r *Record) bool {
		return part.Said(&graphiti.Row{Name: r.Name, Source: r.Source})
	})
}

// eachRecord calls f for the records of a copy.
func eachRecord(body []byte, f func(*Record) error) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(body))
	for lines := json.NewDecoder(unzipped); err == nil && lines.More(); {
		var r Record
		if err = lines.Decode(&r); err == nil {
			err = f(&r)
		}
	}
	return err
}
