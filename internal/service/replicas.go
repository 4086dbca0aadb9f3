package service

import "github.com/graphiti-proxy/graphiti-proxy/cache"

// Listen applies the events of other replicas: stored turns, changed people, forgotten scopes.
func (sv *Service) Listen() {
	if sv.o.Shared == nil {
		return
	}
	sv.o.Shared.Listen(sv.o.Name, sv.apply, func() { // events were missed meanwhile
		sv.apply(cache.EventGeneration)
		sv.apply(cache.EventProofs)
		sv.o.Facts.DropAll()
	})
}

// apply forgets what another replica forgot before the group is recalled again.
func (sv *Service) apply(event string) {
	if event == cache.EventGeneration {
		floors, err := sv.o.State.Generations.Floors(sv.base)
		if err == nil {
			_, err = sv.o.Pipeline.Raise(floors)
		}
		if err != nil {
			sv.o.Log.Warn("forget what other replicas forgot failed", "error", err)
		}
		sv.o.Pipeline.Doubt()
	}
	if err := sv.o.State.Apply(sv.base, event); err != nil {
		sv.o.Log.Warn("apply event of another replica failed", "error", err)
	}
	sv.o.Pipeline.Apply(event)
	sv.o.Facts.Apply(event)
	switch event {
	case cache.EventProofs:
		sv.o.People.Check()
	case cache.EventGeneration:
		sv.goOn()
	}
}
