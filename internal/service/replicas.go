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

func (sv *Service) apply(event string) {
	if err := sv.o.State.Apply(sv.base, event); err != nil {
		sv.o.Log.Warn("apply event of another replica failed", "error", err)
	}
	sv.o.Facts.Apply(event)
	if event == cache.EventProofs {
		sv.o.People.Check()
	}
	if event != cache.EventGeneration {
		return
	}
	sv.o.Pipeline.Doubt()
	floors := make(map[string]int64)
	for _, f := range sv.o.State.Generations.UnderWay() {
		floors[f.Scope] = f.Generation
	}
	if _, err := sv.o.Pipeline.Raise(floors); err != nil { // for a start without Redis
		sv.o.Log.Warn("write forgotten scopes to data_dir failed", "error", err)
	}
	sv.goOn()
}
