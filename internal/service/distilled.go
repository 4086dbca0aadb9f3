package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// distilled is where the lines of an export are from that are facts of a model. Their Source
// is a graphiti.Distilled.
const distilled = "fact"

// eachDistilled calls f for the distilled facts of a group, the oldest first.
func (sv *Service) eachDistilled(ctx context.Context, group string, f func(*graphiti.Distilled) error) error {
	d, ok := sv.o.Memory.Distiller()
	if !ok {
		return nil
	}
	return withRemedy(d.Distilled(ctx, group, f))
}

// keysOf returns the keys of the distilled facts among search results, by UUID.
func (sv *Service) keysOf(ctx context.Context, found []inject.Scoped) (map[string][]string, error) {
	keys := make(map[string][]string)
	for i := range found { // the results in one group
		group, uuids := "", []string(nil)
		for _, f := range found[i].Facts {
			if len(f.Messages) > 0 {
				group, uuids = f.Group, append(uuids, f.UUID)
			}
		}
		facts, err := sv.o.Memory.Facts(ctx, group, uuids)
		if err != nil {
			return nil, withRemedy(err)
		}
		for _, f := range facts {
			keys[f.UUID] = f.Keys
		}
	}
	return keys, nil
}

// forgetFact deletes the distilled fact with an ID from all its groups. ok reports whether there
// is one.
func (sv *Service) forgetFact(ctx context.Context, in *ManyRequest) (f Forgotten, ok bool, err error) {
	s, id := in.Selector, in.Messages[0]
	if s.Session != "" || s.Own {
		return f, false, nil
	}
	groups, _, err := sv.owned(ctx, s)
	if err != nil {
		return f, false, err
	}
	f.Message = id
	for _, o := range groups {
		err := sv.eachDistilled(ctx, o.Group, func(d *graphiti.Distilled) error {
			if graphiti.MessageID(d.Name) == id && !slices.Contains(f.Groups, o.Group) {
				f.Groups = append(f.Groups, o.Group)
			}
			return nil
		})
		if err != nil {
			return f, false, err
		}
	}
	if len(f.Groups) == 0 {
		return f, false, nil
	}
	f.Group, f.change.What = f.Groups[0], whatForget
	for _, g := range f.Groups {
		f.change.in(g)
	}
	if in.Do == whatRemove {
		err = sv.copyFor(ctx, &s, &f.change, func(add func(Record) error) (err error) {
			for _, g := range f.Groups {
				err = cmp.Or(err, sv.exportFacts(ctx, g, Record{Group: g}, add, func(d *graphiti.Distilled) bool { return graphiti.MessageID(d.Name) == id }))
			}
			return err
		})
	}
	for _, g := range f.Groups {
		if in.Do == whatForget {
			err = cmp.Or(err, sv.dropCopies(ctx, copyScope+g, func(r *Record) bool { return graphiti.MessageID(r.Name) == id }))
		}
		if err == nil {
			_, err = sv.forget(ctx, ledger.Part{Group: g, Message: id})
		}
	}
	return f, true, err
}

// exportFacts exports the facts of a group for which meant returns true. whose has the fields of
// its records.
func (sv *Service) exportFacts(ctx context.Context, group string, whose Record, f func(Record) error, meant func(*graphiti.Distilled) bool) error {
	return sv.eachDistilled(ctx, group, func(d *graphiti.Distilled) error {
		if !meant(d) {
			return nil
		}
		source, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("export a fact: %w", err)
		}
		r := whose
		r.Where, r.Name, r.Role, r.Text, r.Source = distilled, d.Name, string(d.Role), d.Text, string(source)
		r.Time = d.Since.UTC().Format(time.RFC3339Nano)
		return f(r)
	})
}

// distilledLines has the facts of an import, by group.
type distilledLines map[string][]graphiti.Distilled

func (l distilledLines) add(group string, line *Line) error {
	var d graphiti.Distilled
	if err := json.Unmarshal([]byte(line.Source), &d); err != nil || len(d.Sources) == 0 || d.Since.IsZero() {
		return errors.New("source: is not the one of a fact; leave the line as export wrote it")
	}
	d.Name, d.Text = line.Episode, line.Content
	l[group] = append(l[group], d)
	return nil
}

// queueDistilled queues the messages of imported turns for a model that distils facts.
func (sv *Service) queueDistilled(ctx context.Context, turns []ledger.Turn) error {
	d, ok := sv.o.Memory.Distiller()
	if !ok {
		return invalid("distil: Graphiti extracts facts itself; import without it")
	}
	names := make(map[string][]string) // by group
	for i := range turns {
		t := &turns[i]
		group := t.Targets[0].Group
		names[group] = append(names[group], graphiti.EpisodeName(t.ID, graphiti.RoleUser), graphiti.EpisodeName(t.ID, graphiti.RoleAssistant))
		for _, r := range t.Restored {
			names[group] = append(names[group], r.Name)
		}
	}
	for group, list := range names {
		if err := d.QueueDistilled(ctx, group, list); err != nil {
			return withRemedy(err)
		}
	}
	return nil
}

// restoreFacts stores the facts of an import, after their messages.
func (sv *Service) restoreFacts(ctx context.Context, facts distilledLines, done *Imported) error {
	d, ok := sv.o.Memory.Distiller()
	for group, list := range facts {
		kept := 0
		if ok {
			var err error
			if kept, err = d.RestoreDistilled(ctx, group, list); err != nil {
				return withRemedy(err)
			}
		}
		done.Kept += kept
		done.Known += len(list) - kept
	}
	return nil
}
